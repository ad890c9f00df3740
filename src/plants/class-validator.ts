/**
 * What the rules on the DTOs use of class-validator. In the package this file is a bundle of just
 * these, because all of class-validator is larger than everything else that a host would install.
 */
export { ValidateBy, ValidateIf, validateSync } from 'class-validator';
