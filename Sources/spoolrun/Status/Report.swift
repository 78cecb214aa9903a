internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolReport
internal import SpoolStatus
internal import SystemPackage

struct Report: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "report", abstract: "Writes a page about what a spool has done.",
    usage: "spoolrun report [<options>] [<spool>]",
    discussion: """
      One HTML file without scripts, which needs nothing from elsewhere: bytes and jobs by hour, rates by host, \
      failures by code and host, the slowest, biggest and oldest jobs, and what needs a person. It is made from the \
      journals and receipts alone, and shows names of jobs and files.
      """)

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("Where to write the page; - is standard output. (default: report.html)", valueName: "file"),
    completion: .file(extensions: ["html"])) var output: String?

  @Option(
    help: ArgumentHelp(
      "Leave out what happened before: an age such as 7d, or a day or time in UTC. (default: leave out nothing)",
      valueName: "time")) var since: String?

  @OptionGroup var spool: SpoolArgument

  func validate() throws {
    if let since, Self.start(since, now: .now()) == nil {
      throw ValidationError("--since needs an age such as 12h or 7d, a day such as 2026-11-21, or 2026-11-21T03:00:00Z")
    }
    if output?.isEmpty ?? false { throw ValidationError("--output needs the name of a file") }
  }

  private static func start(_ text: String, now: Timestamp) -> Timestamp? {
    if let time = Timestamp(text) { return time }
    return duration(text, needsUnit: true).map { now + -Int64($0) }
  }

  func run() throws {
    let spool = try self.spool.open(for: .reading)
    // Whoever may not write to the spool sees it by this host's clock.
    spool.learnClockToRead()
    try ExitStatus.reporting(escaped(spool.location)) {
      let now = spool.now()
      let snapshot = try SnapshotReader(spool, limit: 0, receipts: 0, now: now).read()
      // The page would be wrong.
      if let directory = snapshot.unreadable.first {
        throw SpoolError(call: .list, path: directory.rawValue, errno: .permissionDenied)
      }
      let facts = try ReportFacts.read(spool, since: since.flatMap { Self.start($0, now: now) }, now: now)
      try write(ReportPage(facts, snapshot).html)
    }
  }

  private func write(_ page: String) throws {
    let file = output ?? "report.html"
    if file == "-" { return _ = Terminal.write(page, to: STDOUT_FILENO) }
    if output == nil, let old = try ReplacedFile.read(file, limit: 1 << 30), !ReportPage.isOne(old) {
      throw ExitStatus.cannotCreate.after("\(file) is there, and no report: name another file with --output")
    }
    try ReplacedFile.write(Array(page.utf8), to: file)
    Terminal.say("\(escaped(file)) is written: open it in a browser")
  }
}
