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
  isStringLiteral,
  isVariableDeclaration,
} from 'typescript/unstable/ast/is';
import { API } from 'typescript/unstable/async';

/** A program with one check less, or with one that says the opposite. */
export interface Mutant {
  readonly path: string;
  /** The declaration it lies in, what stood there and what does now: the same wherever lines move. */
  readonly name: string;
  /** Where it lies in what stood there: the first line and the last, counted from 1. */
  readonly lines: readonly [first: number, last: number];
  readonly text: string;
}

/** A piece of a file, and what takes its place. */
interface Replacement {
  readonly from: number;
  readonly to: number;
  readonly by: string;
}

/** Comparisons, each with its opposite and, where it has one, its other side of the bound. */
const COMPARISONS: ReadonlyMap<SyntaxKind, readonly string[]> = new Map([
  [SyntaxKind.EqualsEqualsEqualsToken, ['!==']],
  [SyntaxKind.ExclamationEqualsEqualsToken, ['===']],
  [SyntaxKind.LessThanToken, ['>=', '<=']],
  [SyntaxKind.LessThanEqualsToken, ['>', '<']],
  [SyntaxKind.GreaterThanToken, ['<=', '>=']],
  [SyntaxKind.GreaterThanEqualsToken, ['<', '>']],
]);
const JUNCTIONS: ReadonlySet<SyntaxKind> = new Set([
  SyntaxKind.AmpersandAmpersandToken,
  SyntaxKind.BarBarToken,
]);
/** Methods whose function is a check, and links of a chain that are one. */
const JUDGING: ReadonlySet<string> = new Set(['filter', 'some', 'every', 'find']);
const LINKS: ReadonlySet<string> = new Set(['refine', 'superRefine', 'min', 'max', 'regex']);

/** Every mutant of these files, made from their syntax trees. */
export async function mutantsOf(root: string, paths: readonly string[]): Promise<readonly Mutant[]> {
  const api = new API({ cwd: root });
  try {
    const snapshot = await api.updateSnapshot({ openProjects: [join(root, 'tsconfig.json')] });
    const [project] = snapshot.getProjects();
    const mutants: Mutant[] = [];
    for (const path of paths) {
      const file = await project?.program.getSourceFile(join(root, path));
      if (!file) throw new Error(`${path} is no file of the project`);
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
  const visit = (node: Node, within: string): undefined => {
    for (const { from, to, by } of replacementsOf(node, text)) {
      const said = `${within}: \`${plain(text.slice(from, to))}\` → \`${plain(by)}\``;
      const count = (counts.get(said) ?? 0) + 1;
      counts.set(said, count);
      const name = count === 1 ? said : `${said} (${count})`;
      const lines = [lineAt(text, from), lineAt(text, to)] as const;
      mutants.push({ path, name, lines, text: text.slice(0, from) + by + text.slice(to) });
    }
    const inner = declaredName(node) ?? within;
    if (!isDocumentation(node)) node.forEachChild((child) => visit(child, inner));
    return undefined;
  };
  visit(file, 'file');
  return mutants;
}

/** The part of an operation that only the OpenAPI document reads, and that its own suites hold. */
function isDocumentation(node: Node): boolean {
  if (isFunctionDeclaration(node)) return node.name?.getText() === 'documentationOf';
  return (isPropertyAssignment(node) || isMethodDeclaration(node)) && node.name.getText() === 'document';
}

function lineAt(text: string, place: number): number {
  return text.slice(0, place).split('\n').length;
}

/** One line, short enough to be read in a list. */
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

function replace(node: Node, by: string): Replacement {
  return { from: node.getStart(), to: node.end, by };
}

/** Conditions become constant, which drops the guard or what it guards. */
function ofConditions(node: Node): readonly Replacement[] {
  const condition = isIfStatement(node)
    ? node.expression
    : isConditionalExpression(node)
      ? node.condition
      : undefined;
  return condition ? [replace(condition, 'true'), replace(condition, 'false')] : [];
}

/** Comparisons are flipped, one half of a junction is dropped, and so is a `!`. */
function ofOperators(node: Node, text: string): readonly Replacement[] {
  if (isPrefixUnaryExpression(node) && node.operator === SyntaxKind.ExclamationToken && !isDecided(node)) {
    return [replace(node, text.slice(node.operand.getStart(), node.operand.end))];
  }
  if (!isBinaryExpression(node)) return [];
  const { left, right, operatorToken } = node;
  if (JUNCTIONS.has(operatorToken.kind)) {
    return [left, right].map((half) => replace(node, text.slice(half.getStart(), half.end)));
  }
  const [opposite, ...bounds] = COMPARISONS.get(operatorToken.kind) ?? [];
  const flips = opposite === undefined || isDecided(node) ? bounds : [opposite, ...bounds];
  return flips.map((by) => replace(operatorToken, by));
}

/** Whether this is a condition, or a part of one: whoever finds it constant finds its opposite. */
function isDecided(node: Node): boolean {
  const { parent } = node;
  if (isIfStatement(parent)) return parent.expression === node;
  if (isConditionalExpression(parent)) return parent.condition === node;
  const isPart = isBinaryExpression(parent) && JUNCTIONS.has(parent.operatorToken.kind);
  return (
    (isPart || isPrefixUnaryExpression(parent) || isParenthesizedExpression(parent)) && isDecided(parent)
  );
}

/** Functions that judge say yes or no to everything; links of a chain and options of a check are dropped. */
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
  if (LINKS.has(name))
    return [replace(node, text.slice(expression.expression.getStart(), expression.expression.end))];
  const isJudged = JUDGING.has(name) && first && isArrowFunction(first) && !isBlock(first.body);
  return isJudged ? [replace(first, '() => true'), replace(first, '() => false')] : [];
}

/** Stages of an operation, and members of a list that is written out, are dropped one by one. */
function ofLists(node: Node, text: string): readonly Replacement[] {
  if (!isArrayLiteralExpression(node)) return [];
  const { parent, elements } = node;
  const isPath =
    isArrowFunction(parent) &&
    isPropertyAssignment(parent.parent) &&
    parent.parent.name.getText() === 'stages';
  const isStages = elements.length > 0 && elements.every((each) => isCallExpression(each) || isStage(each));
  const isWritten = elements.every((each) => isStringLiteral(each)) && isConstant(node);
  return isPath || isStages || isWritten ? elements.map((each) => drop(each, text)) : [];
}

const isStage = (node: Node): boolean =>
  isIdentifier(node) && /^(authenticated|permitted|readBody)$/.test(node.text);

/** Whether a list is the value of a constant of the file, by itself or as a set. */
function isConstant(node: Node): boolean {
  const above = isNewExpression(node.parent) ? node.parent.parent : node.parent;
  const declaration = isVariableDeclaration(above) ? above : above.parent;
  return isVariableDeclaration(declaration) && /^[A-Z_]+$/.test(declaration.name.getText());
}

/** Takes out an element, and the comma behind it. */
function drop(node: Node, text: string): Replacement {
  const comma = /^\s*,/.exec(text.slice(node.end))?.[0].length ?? 0;
  return { from: node.getStart(), to: node.end + comma, by: '' };
}
