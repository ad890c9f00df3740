/**
 * Loads what needs the driver of PostgreSQL. Only whoever stores plants there installs it.
 *
 * @throws Error naming the command that installs it
 */
export function loadDriver<Store>(load: () => Store): Store {
  try {
    return load();
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'MODULE_NOT_FOUND') throw cause;
    throw new Error('PostgreSQL needs its driver: npm install pg', { cause });
  }
}
