import { TestApplication } from './support/application';

describe('POST /plants', () => {
  let application: TestApplication;
  beforeAll(async () => {
    application = await TestApplication.start();
  });
  afterAll(() => application.stop());

  it('x', async () => {
    const r = await application.post('{"id":9007199254740993,"name":"Fern"}');
    expect(r.json()).toEqual({ name: 'Fern' });
    expect(application.plants()).toEqual([{ id: 9007199254740993n, name: 'Fern' }]);
  });
});
