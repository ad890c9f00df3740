import { describeFault, OptionError } from './operator.error';

describe('a fault of an option', () => {
  it('names the option for a host, and the variable for an operator', () => {
    const error = new OptionError('sqlite', 'must name a file');

    expect(error.message).toBe('PlantsModule: "sqlite" must name a file.');
    expect(describeFault(error, () => 'DATABASE_URL')).toBe('DATABASE_URL must name a file');
  });

  it('may end with the name of another option', () => {
    const fault = { option: 'auth.issuer', clause: 'requires', other: 'auth.audience' };

    expect(describeFault(fault)).toBe('"auth.issuer" requires "auth.audience"');
    expect(describeFault(fault, (name) => name.toUpperCase())).toBe(
      'AUTH.ISSUER requires AUTH.AUDIENCE',
    );
  });
});
