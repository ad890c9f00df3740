import type { Spread } from './statistics';

/** A bar chart of requests a second, with whiskers from the least to the most, as SVG. */
export function drawChart(bars: readonly { name: string; rate: Spread; cpu: Spread }[]): string {
  const [left, width, step] = [320, 460, 30];
  const most = Math.max(...bars.map(({ rate }) => rate.most));
  const x = (rate: number): number => Math.round(left + (rate / most) * width);
  const height = 50 + bars.length * step;

  const rows = bars.map(({ name, rate, cpu }, at) => {
    const y = 40 + at * step;
    const colour = name.startsWith('Plant Store') ? '#2e7d32' : '#9e9e9e';
    const label = `${Math.round(rate.median).toLocaleString('en')}/s · ${cpu.median.toFixed(1)} µs`;
    return [
      `<text x="${left - 8}" y="${y + 14}" text-anchor="end">${name}</text>`,
      `<rect x="${left}" y="${y}" width="${x(rate.median) - left}" height="20" fill="${colour}"/>`,
      `<path d="M${x(rate.least)} ${y + 10}H${x(rate.most)}" stroke="#000"/>`,
      `<text x="${x(rate.most) + 8}" y="${y + 14}">${label}</text>`,
    ].join('\n');
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="960" height="${height}" font-family="sans-serif" font-size="13">`,
    '<rect width="100%" height="100%" fill="#fff"/>',
    '<text x="16" y="22" font-weight="bold">Requests a second at 64 connections · server CPU a request</text>',
    ...rows,
    '</svg>\n',
  ].join('\n');
}
