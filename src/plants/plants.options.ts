/** How a host wants its {@link PlantsModule}. */
export interface PlantsModuleOptions {
  /**
   * The file of the SQLite database, relative to the working directory. It and its directory are
   * created when missing.
   *
   * @default 'data/plants.db'
   */
  readonly sqlite?: string;
}
