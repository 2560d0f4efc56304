/** Elements made without a template: verify.html and the scanner have no library for them. */

export function make(name: string, properties: Record<string, string>, ...children: (Node | string)[]): HTMLElement {
  const element = document.createElement(name);
  for (const [property, value] of Object.entries(properties)) element.setAttribute(property, value);
  element.append(...children);
  return element;
}
