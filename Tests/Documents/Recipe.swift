import TestSupport

/// A section of spoolrun-howto(7).
struct Recipe {
  /// What `$` and `#` begin, as one script.
  let script: String
  /// Lines of crontab(5): the commands.
  let cron: [String]
  /// What begins with neither, such as those lines or a file.
  let text: String

  static let manual = "man/spoolrun-howto.7"

  /// The sections that have commands, but for the introduction.
  static func titles() throws -> [String] {
    try SourceTree.lines(manual).filter { $0.hasPrefix(".Sh ") }.map { String($0.dropFirst(4)) }
      .filter { !["NAME", "DESCRIPTION", "SEE ALSO"].contains($0) }
  }

  init(_ title: String) throws {
    var script = ""
    var cron: [String] = []
    var all = ""
    var isLiteral = false
    // Lines that are set in go on with a command.
    var isScript = false
    for line in try Manual(Self.manual).section(title) {
      if line.hasPrefix(".Bd -literal") || line == ".Ed" {
        (isLiteral, isScript) = (line != ".Ed", false)
      } else if isLiteral {
        let text = line.replacing("\\e", with: "\\").replacing("\\&", with: "")
        if text.hasPrefix("$ ") || text.hasPrefix("# ") {
          script += text.dropFirst(2) + "\n"
          isScript = true
        } else if isScript, text.hasPrefix(" ") {
          script += text + "\n"
        } else {
          all += text + "\n"
          cron += text.split(separator: " ", maxSplits: 5).dropFirst(5).map(String.init)
        }
      }
    }
    (self.script, self.cron, self.text) = (script, cron, all)
  }
}
