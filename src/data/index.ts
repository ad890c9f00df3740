export { describeStore, openArchive, openForDryRun, readStore } from './store';
export { csvHeader, toCsv } from './csv';
export { type ImportBatch, type ImportCounts, importPlants, type Rejection } from './import-plants';
export { toNdjson } from './ndjson';
export type { ArchivedPlant, PlantsArchive } from './plants.archive';
export { type Format, formats } from './records';
export { checkSqlite, copySqlite, replaceSqlite } from './sqlite.maintenance';
