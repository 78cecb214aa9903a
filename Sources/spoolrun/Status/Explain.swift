internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolStatus

struct Explain: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain",
    abstract: "Explains a failure code, or a job.",
    discussion: """
      A code is a word such as http-404 or disk-full, as status, the log and the lines of a job have it. Without an \
      argument, lists all codes. The name of a job tells the same as status does.
      """)

  @OptionGroup var spool: SpoolOption

  @Argument(
    help: ArgumentHelp("A failure code, or a job as name or directory/name.", valueName: "code-or-name"),
    completion: .custom { words, index, prefix in
      FailureExplanation.all.map(\.code).filter { $0.begins(with: prefix) }
        + JobNameCompletion.names(words).filter { $0.begins(with: prefix) }
    })
  var words: [String] = []

  func run() throws {
    if words.isEmpty {
      let width = FailureExplanation.all.map(\.code.utf8.count).max() ?? 0
      for (code, meaning) in FailureExplanation.all {
        Terminal.print("\(code)\(String(repeating: " ", count: width - code.utf8.count))  \(meaning)")
      }
      return
    }
    let codes = words.filter { FailureExplanation(of: $0) != nil }
    for code in codes {
      guard let lines = FailureExplanation(of: code)?.lines else { continue }
      Terminal.print("\(code): \(lines[0])\n" + lines.dropFirst().map { "  \($0)" }.joined(separator: "\n"))
    }
    let jobs = words.filter { !codes.contains($0) }
    if jobs.isEmpty { return }
    try JobTelling(spools: try spool.openAll(for: .reading)) { _ in
      ", and no failure code of this name: `spoolrun explain` lists them"
    }.tell(of: jobs)
  }
}
