import { join, relative } from 'node:path';
import { type Node, SyntaxKind } from 'typescript/unstable/ast';
import {
  isArrayLiteralExpression,
  isArrowFunction,
  isBinaryExpression,
  isBlock,
  isCallExpression,
  isConditionalExpression,
  isFunctionDeclaration,
  isIdentifier,
  isIfStatement,
  isMethodDeclaration,
  isNewExpression,
  isObjectLiteralExpression,
  isParenthesizedExpression,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isPropertyAssignment,
  isReturnStatement,
  isStringLiteral,
  isVariableDeclaration,
} from 'typescript/unstable/ast/is';
import { API } from 'typescript/unstable/async';

/** A program with one check removed or inverted. */
export interface Mutant {
  readonly path: string;
  /** The enclosing declaration, the original code and its replacement: independent of line numbers. */
  readonly name: string;
  /** The replaced lines of the original, counted from 1. */
  readonly lines: readonly [first: number, last: number];
  readonly text: string;
}

interface Replacement {
  readonly from: number;
  readonly to: number;
  readonly replacement: string;
}

/** Comparisons, each with its negation and, for an order, with the bound included or excluded. */
const COMPARISONS: ReadonlyMap<SyntaxKind, readonly string[]> = new Map([
  [SyntaxKind.EqualsEqualsEqualsToken, ['!==']],
  [SyntaxKind.ExclamationEqualsEqualsToken, ['===']],
  [SyntaxKind.LessThanToken, ['>=', '<=']],
  [SyntaxKind.LessThanEqualsToken, ['>', '<']],
  [SyntaxKind.GreaterThanToken, ['<=', '>=']],
  [SyntaxKind.GreaterThanEqualsToken, ['<', '>']],
]);
const LOGICAL_OPERATORS: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.AmpersandAmpersandToken,
  SyntaxKind.BarBarToken,
]);
/** Methods whose callback is a check, and chained calls that add one. */
const PREDICATE_METHODS: ReadonlySet<string> = new Set(['filter', 'some', 'every', 'find']);
const CHAINED_CHECKS: ReadonlySet<string> = new Set(['refine', 'superRefine', 'min', 'max', 'regex']);

/** Every mutant of these files, made from their syntax trees. */
export async function mutantsOf(root: string, paths: readonly string[]): Promise<readonly Mutant[]> {
  const api = new API({ cwd: root });
  try {
    const snapshot = await api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] });
    const [project] = snapshot.getProjects();
    const mutants: Mutant[] = [];
    for (const path of paths) {
      const file = await project?.program.getSourceFile(join(root, path));
      if (!file) throw new Error(`${path} is not a file of the project`);
      mutants.push(...mutantsOfFile(relative(root, join(root, path)), file.text, file));
    }
    return mutants;
  } finally {
    await api.close();
  }
}

function mutantsOfFile(path: string, text: string, file: Node): readonly Mutant[] {
  const counts = new Map<string, number>();
  const mutants: Mutant[] = [];
  const visit = (node: Node, declaration: string): undefined => {
    for (const { from, to, replacement } of replacementsOf(node, text)) {
      const description = `${declaration}: \`${plain(text.slice(from, to))}\` → \`${plain(replacement)}\``;
      const count = (counts.get(description) ?? 0) + 1;
      counts.set(description, count);
      const name = count === 1 ? description : `${description} (${count})`;
      const lines = [lineAt(text, from), lineAt(text, to)] as const;
      mutants.push({ path, name, lines, text: text.slice(0, from) + replacement + text.slice(to) });
    }
    const inner = declaredName(node) ?? declaration;
    if (!isDocumentation(node)) node.forEachChild((child) => visit(child, inner));
    return undefined;
  };
  visit(file, 'file');
  return mutants;
}

/** The part of an operation that only the OpenAPI document uses, which has suites of its own. */
function isDocumentation(node: Node): boolean {
  if (isFunctionDeclaration(node))
    return /^documentationOf$|^example|Example$/.test(node.name?.getText() ?? '');
  return (isPropertyAssignment(node) || isMethodDeclaration(node)) && node.name.getText() === 'document';
}

function lineAt(text: string, place: number): number {
  return text.slice(0, place).split('\n').length;
}

/** Code as one short line for a list. */
function plain(code: string): string {
  const line = code.replaceAll('`', "'").replace(/\s+/g, ' ').trim();
  return line.length > 90 ? `${line.slice(0, 89)}…` : line;
}

function declaredName(node: Node): string | undefined {
  if ((isFunctionDeclaration(node) || isMethodDeclaration(node)) && node.name) return node.name.getText();
  if (isVariableDeclaration(node)) return node.name.getText();
  return isPropertyAssignment(node) && isArrowFunction(node.initializer) ? node.name.getText() : undefined;
}

function replacementsOf(node: Node, text: string): readonly Replacement[] {
  return [...ofConditions(node), ...ofOperators(node, text), ...ofCalls(node, text), ...ofLists(node, text)];
}

function replace(node: Node, replacement: string): Replacement {
  return { from: node.getStart(), to: node.end, replacement };
}

/** Conditions become constant, which removes the guard or the guarded code. */
function ofConditions(node: Node): readonly Replacement[] {
  const condition = isIfStatement(node)
    ? node.expression
    : isConditionalExpression(node)
      ? node.condition
      : undefined;
  return condition ? [replace(condition, 'true'), replace(condition, 'false')] : [];
}

/** Comparisons are negated or shifted; an operand of `&&` or `||` and a `!` are removed. */
function ofOperators(node: Node, text: string): readonly Replacement[] {
  if (isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken && !isCondition(node)) {
    return [replace(node, text.slice(node.operand.getStart(), node.operand.end))];
  }
  if (!isBinaryExpression(node)) return [];
  const { left, right, operatorToken } = node;
  if (LOGICAL_OPERATORS.has(operatorToken.kind)) {
    return [left, right].map((half) => replace(node, text.slice(half.getStart(), half.end)));
  }
  const [opposite, ...bounds] = COMPARISONS.get(operatorToken.kind) ?? [];
  const flips = opposite === undefined || isCondition(node) ? bounds : [opposite, ...bounds];
  return flips.map((replacement) => replace(operatorToken, replacement));
}

/** Whether this is a condition or a part of one: constant conditions already cover its negation. */
function isCondition(node: Node): boolean {
  const { parent } = node;
  if (isIfStatement(parent)) return parent.expression === node;
  if (isConditionalExpression(parent)) return parent.condition === node;
  const isPart = isBinaryExpression(parent) && LOGICAL_OPERATORS.has(parent.operatorToken.kind);
  return (
    (isPart || isPrefixUnaryExpression(parent) || isParenthesizedExpression(parent)) && isCondition(parent)
  );
}

/** Predicates become constant; chained checks and options of `jwtVerify` are removed. */
function ofCalls(node: Node, text: string): readonly Replacement[] {
  if (!isCallExpression(node)) return [];
  const { expression, arguments: given } = node;
  const [first] = given;
  if (isIdentifier(expression) && expression.text === 'jwtVerify') {
    const options = given.find((each) => isObjectLiteralExpression(each));
    return options && isObjectLiteralExpression(options)
      ? options.properties.map((each) => drop(each, text))
      : [];
  }
  if (!isPropertyAccessExpression(expression)) return [];
  const name = expression.name.getText();
  if (CHAINED_CHECKS.has(name))
    return [replace(node, text.slice(expression.expression.getStart(), expression.expression.end))];
  const isPredicate = PREDICATE_METHODS.has(name) && first && isArrowFunction(first) && !isBlock(first.body);
  return isPredicate ? [replace(first, '() => true'), replace(first, '() => false')] : [];
}

/** Stages, and elements of a constant list of strings, are removed one by one. */
function ofLists(node: Node, text: string): readonly Replacement[] {
  if (!isArrayLiteralExpression(node)) return [];
  const { parent, elements } = node;
  // The stages of a lookup, and those that admit all other calls.
  const isRun = isCallExpression(parent) && parent.expression.getText() === 'runStages';
  const isEntry = isReturnStatement(parent) && functionName(parent) === 'entryStages';
  const isStages =
    elements.some(isAuthentication) ||
    (elements.length > 0 && elements.every((each) => isCallExpression(each)));
  const isLiteralList = elements.every((each) => isStringLiteral(each)) && isConstant(node);
  return isRun || isEntry || isStages || isLiteralList ? elements.map((each) => drop(each, text)) : [];
}

/** The name of the function declaration that a statement is directly in. */
function functionName(statement: Node): string | undefined {
  const above = statement.parent.parent;
  return isFunctionDeclaration(above) ? above.name?.getText() : undefined;
}

/** The stage that every operation for callers with a token has. */
const isAuthentication = (node: Node): boolean =>
  isCallExpression(node) && isIdentifier(node.expression) && node.expression.text === 'authenticate';

/** Whether a list is the value of a constant, directly or through `new Set`. */
function isConstant(node: Node): boolean {
  const above = isNewExpression(node.parent) ? node.parent.parent : node.parent;
  const declaration = isVariableDeclaration(above) ? above : above.parent;
  return isVariableDeclaration(declaration) && /^[A-Z_]+$/.test(declaration.name.getText());
}

/** Removes an element and the comma after it. */
function drop(node: Node, text: string): Replacement {
  const comma = /^\s*,/.exec(text.slice(node.end))?.[0].length ?? 0;
  return { from: node.getStart(), to: node.end + comma, replacement: '' };
}
