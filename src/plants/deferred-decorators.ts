/** The part of a package that makes decorators. */
type DecoratorFactories = Record<string, (...args: never[]) => unknown>;

type AnyDecorator = (...target: unknown[]) => unknown;

/**
 * The decorators of a package that is slow to load. They are remembered until their
 * metadata is needed, and only then the package is loaded. Later decorators take effect at once.
 *
 * @param load loads the package; undefined when it is not installed, and the decorators do nothing
 */
export function deferDecorators<Package extends object>(
  load: () => Package | undefined,
): {
  /** The package's decorators, under their own names. */
  readonly decorators: Package;
  /** Loads the package and applies what was remembered. Cheap when that was done before. */
  readonly apply: () => Package | undefined;
} {
  let loaded: Package | undefined;
  const remembered: ((from: DecoratorFactories) => void)[] = [];

  const decorators = new Proxy({} as Package, {
    get:
      (_target, name: string) =>
      (...args: never[]): AnyDecorator =>
      (...target) => {
        const decorate = (from: DecoratorFactories): void => {
          (from[name]?.(...args) as AnyDecorator)(...target);
        };
        if (loaded === undefined) remembered.push(decorate);
        else decorate(loaded as DecoratorFactories);
      },
  });
  const apply = (): Package | undefined => {
    if (loaded !== undefined) return loaded;
    loaded = load();
    if (loaded === undefined) return undefined;
    for (const decorate of remembered.splice(0)) decorate(loaded as DecoratorFactories);
    return loaded;
  };
  return { decorators, apply };
}
