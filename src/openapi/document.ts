import type { INestApplication } from '@nestjs/common';
import { DocumentBuilder, type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';

/** The OpenAPI document of the contract, from the decorators of the code. */
export function createDocument(app: INestApplication): OpenAPIObject {
  const config = new DocumentBuilder()
    .setOpenAPIVersion('3.1.0')
    .setTitle('OpenAPI Plant Store')
    .setDescription('A sample plant store.')
    .setVersion('1.0.0')
    .setLicense('MIT', 'https://opensource.org/license/mit')
    .addSecurity('bearerAuth', { type: 'http', scheme: 'bearer' })
    .addSecurityRequirements('bearerAuth')
    .build();
  return SwaggerModule.createDocument(app, config, {
    operationIdFactory: (_controller, method) => `${method}Plant`,
  });
}

/** Serves the document at `/openapi.json` and Swagger UI at `/docs`. Both are public. */
export function serveDocument(app: INestApplication): void {
  SwaggerModule.setup('docs', app, () => createDocument(app), {
    jsonDocumentUrl: 'openapi.json',
    raw: ['json'],
  });
}
