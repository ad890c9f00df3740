import { type ArgumentsHost, Catch, HttpException } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { PlantStoreError } from '../../../src/plants';

@Catch(HttpException)
export class MalformedJsonFilter extends BaseExceptionFilter {
  override catch(exception: HttpException, host: ArgumentsHost): void {
    const { url, method } = host.switchToHttp().getRequest<{ url: string; method: string }>();
    const isCreateRequest = method === 'POST' && /\/plants(?:\?|$)/.test(url);
    const isRejected = isCreateRequest && exception.getStatus() === 400;
    super.catch(isRejected ? new PlantStoreError('notJson') : exception, host);
  }
}
