/**
 * Loads a module that needs the PostgreSQL driver. Hosts that use SQLite need not install it.
 *
 * @throws Error naming the command that installs it
 */
export function loadDriver<Store>(load: () => Store): Store {
  try {
    return load();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw cause;
    throw new Error('The PostgreSQL driver is not installed. Run: npm install pg', { cause });
  }
}
