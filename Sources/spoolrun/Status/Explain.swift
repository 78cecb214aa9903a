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
    completion: JobNameCompletion.kind)
  var words: [String] = []

  func run() throws {
    if words.isEmpty {
      return FailureExplanation.all.forEach { Terminal.print("\(padded($0.code, to: 20))\($0.meaning)") }
    }
    var jobs: [String] = []
    for word in words {
      if let lines = FailureExplanation(of: word)?.lines {
        Terminal.print("\(word): \(lines.joined(separator: "\n  "))")
      } else {
        jobs.append(word)
      }
    }
    if jobs.isEmpty { return }
    let (spools, fetched) = try spool.openAllAndFetched(for: .reading)
    try JobTelling(spools: spools, fetched: fetched) { _ in
      ", and no failure code of this name: `spoolrun explain` lists them"
    }.tell(of: jobs)
  }
}
