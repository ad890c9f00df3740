export { csvHeader, CsvWriter } from './csv';
export { type ImportCounts, importPlants, type Rejection } from './import-plants';
export { FileError, type Format, formats } from './records';
