import TestSupport

/// A section of spoolrun-howto(7).
struct Recipe {
  /// What `$` and `#` begin, as one script.
  let script: String
  /// Lines of crontab(5): the commands.
  let cron: [String]

  static let manual = "man/spoolrun-howto.7"

  /// The sections that have commands, but for the introduction.
  static func titles() throws -> [String] {
    try SourceTree.lines(manual).filter { $0.hasPrefix(".Sh ") }.map { String($0.dropFirst(4)) }
      .filter { !["NAME", "DESCRIPTION", "SEE ALSO"].contains($0) }
  }

  init(_ title: String) throws {
    var script = ""
    var cron: [String] = []
    var isLiteral = false
    for line in try Manual(Self.manual).section(title) {
      if line.hasPrefix(".Bd -literal") || line == ".Ed" {
        isLiteral = line != ".Ed"
      } else if isLiteral {
        let text = line.replacing("\\e", with: "\\").replacing("\\&", with: "")
        if text.hasPrefix("$ ") || text.hasPrefix("# ") {
          script += text.dropFirst(2) + "\n"
        } else if text.hasPrefix(" ") {
          script += text + "\n"
        } else {
          cron += text.split(separator: " ", maxSplits: 5).dropFirst(5).map(String.init)
        }
      }
    }
    (self.script, self.cron) = (script, cron)
  }
}
