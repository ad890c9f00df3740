/** What only the program needs. Its types are those of a library that a host need not have. */
export { IssuerKeys } from './issuer-keys';
