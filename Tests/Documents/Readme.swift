import TestSupport

/// What README.md, or another page, shows: fenced blocks and tables.
struct Readme {
  struct Block: Sendable {
    /// What follows the opening fence, such as `sh`.
    let language: String
    let lines: [String]
    /// Where the block starts, for messages.
    let line: Int

    var text: String { lines.joined(separator: "\n") + "\n" }
  }

  private let lines: [String]

  init(_ page: String = "README.md") throws { lines = try SourceTree.lines(page) }

  var blocks: [Block] {
    var blocks: [Block] = []
    var open: (language: String, start: Int)?
    for (index, line) in lines.enumerated() where line.hasPrefix("```") {
      if let (language, start) = open {
        blocks.append(Block(language: language, lines: Array(lines[start..<index]), line: start + 1))
        open = nil
      } else {
        open = (String(line.dropFirst(3)), index + 1)
      }
    }
    return blocks
  }

  /// The rows of the table whose first heading is `heading`, a list of cells each.
  func table(_ heading: String) -> [[String]] {
    lines.drop { !$0.hasPrefix("| \(heading) |") }.prefix { $0.hasPrefix("|") }.dropFirst(2)
      .map { row in row.split(separator: "|").map { $0.split(separator: " ").joined(separator: " ") } }
  }
}

/// A command of a `console` block and what it is said to print.
struct ConsoleStep {
  var command: String
  var output: [String]

  static func steps(_ block: Readme.Block) -> [ConsoleStep] {
    var steps: [ConsoleStep] = []
    for line in block.lines {
      if line.hasPrefix("$ ") {
        steps.append(ConsoleStep(command: String(line.dropFirst(2)), output: []))
      } else if let last = steps.popLast() {
        steps.append(ConsoleStep(command: last.command, output: last.output + [line]))
      }
    }
    return steps
  }

  /// Whether `actual` is what the block shows, but for the numbers, times and names that differ from run to run.
  func isShown(_ actual: String) -> Bool {
    let lines = actual.split(separator: "\n").map(String.init)
    return lines.count == output.count
      && zip(output, lines).allSatisfy { Self.general($0) == Self.general($1, like: $0) }
  }

  /// Times, inodes, seconds and claims become placeholders; `…` stands for whatever is there.
  private static func general(_ line: String, like shown: String? = nil) -> String {
    var text = line.replacing(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/, with: "TIME")
      .replacing(/(part|seconds)=\d+/) { "\($0.1)=N" }
      .replacing(/:[A-Za-z0-9_-]+\.\d+\.[0-9a-f]{8}/, with: ":OWNER")
    // What stands on both sides of the ellipsis has to agree.
    if let shown, let (before, after) = halves(shown) {
      let (before, after) = (general(before), general(after))
      if text.hasPrefix(before), text.hasSuffix(after), text.count >= before.count + after.count {
        text = before + "…" + after
      }
    }
    return text
  }

  private static func halves(_ line: String) -> (String, String)? {
    guard let dots = line.firstIndex(of: "…") else { return nil }
    return (String(line[..<dots]), String(line[line.index(after: dots)...]))
  }
}
