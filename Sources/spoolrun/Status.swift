internal import ArgumentParser
internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SystemPackage

struct Status: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Shows the jobs of a spool and their progress.",
    discussion: """
      With names of jobs, tells what has happened to each of them, and what comes next.

      Only reads the spool, so it works whether or not a worker runs. Without --watch, rates are averages since the \
      attempt began.
      """)

  @Flag(name: .long, help: "Print one JSON object.")
  var json = false

  @Flag(name: .long, help: "Print metrics for Prometheus, as OpenMetrics.")
  var metrics = false

  @Option(
    name: .long,
    help: ArgumentHelp(
      "Write metrics to FILE (- for standard output), for node_exporter's textfile collector.", valueName: "file"),
    completion: .file(extensions: ["prom"]))
  var textfile: String?

  @Flag(name: .shortAndLong, help: "Refresh each second, until interrupted.")
  var watch = false

  @Flag(name: .long, help: "List all jobs, however many there are.")
  var all = false

  @Argument(
    help: ArgumentHelp(
      "The spool directory (default: $SPOOLRUN_SPOOL, else spool), and jobs to tell of, as name or directory/name.",
      valueName: "spool-or-name"),
    completion: JobNameCompletion.kind)
  var arguments: [String] = []

  @OptionGroup var option: SpoolOption

  /// How many jobs of each state are read without --all.
  private static let mostRead = 1000

  func validate() throws {
    if metrics || textfile != nil, json || watch || all {
      throw ValidationError("--metrics and --textfile do not go with --json, --watch and --all")
    }
    if !named.jobs.isEmpty, metrics || textfile != nil || json || watch || all {
      throw ValidationError("names of jobs do not go with options other than --spool")
    }
  }

  /// The arguments: a spool first, unless --spool names it or the first is what a job of the default spool is called.
  private var named: (spool: String?, jobs: [String]) {
    guard let first = arguments.first, option.spool == nil else { return (option.spool, arguments) }
    let parents = first.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    let mayBeJob = parents.last.map { Directory(rawValue: String($0)) != nil } ?? true
    let isJob = mayBeJob && !isDirectory(first) && isDirectory(SpoolOpening.defaultLocation)
    return isJob ? (nil, arguments) : (first, Array(arguments.dropFirst()))
  }

  private func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  func run() throws {
    let spool = try SpoolOpening.open(named.spool, for: .reading)
    // Whoever may not write to the spool sees it by this host's clock.
    try? spool.learnClock()
    do {
      if !named.jobs.isEmpty {
        try tell(of: named.jobs, in: spool)
      } else if metrics || textfile != nil {
        try StatusMetrics(spool: spool, textfile: textfile).run()
      } else if watch {
        var watch = StatusWatch(spool: spool, limit: readLimit) { report($0, $1) }
        try watch.run()
      } else {
        let snapshot = try SnapshotReader(spool, limit: readLimit).read()
        Terminal.write(text(snapshot), to: STDOUT_FILENO)
        // The numbers are incomplete.
        if !snapshot.unreadable.isEmpty {
          throw SpoolError(call: .list, path: snapshot.unreadable[0].rawValue, errno: .permissionDenied)
        }
      }
    } catch let error as SpoolError {
      Terminal.error("\(escaped(spool.location)): \(error)")
      throw ExitStatus.inputOutput.code
    }
  }

  /// - Throws: the exit status 1 if one of them was not found; ``SpoolError``.
  private func tell(of jobs: [String], in spool: Spool) throws {
    let reader = JobStoryReader(spool)
    var isFirst = true
    var isComplete = true
    for bytes in RawArguments.bytes(of: jobs) {
      let (directory, name) = try spool.splitClaim(bytes)
      if let lines = try reader.lines(of: name, in: directory) {
        Terminal.write((isFirst ? "" : "\n") + lines.map { $0 + "\n" }.joined(), to: STDOUT_FILENO)
        isFirst = false
      } else {
        Terminal.error("\(escaped(bytes)): no such job")
        isComplete = false
      }
    }
    if !isComplete { throw ExitStatus.givenUp.code }
  }

  private var readLimit: Int { all ? .max : Self.mostRead }

  private func report(_ snapshot: SpoolSnapshot, _ size: Terminal.Size?) -> StatusWatch.Picture {
    guard !json, let size else { return .text(text(snapshot) + (json ? "" : "\n")) }
    return .lines(
      StatusTable(
        snapshot, Terminal.look(STDOUT_FILENO), width: size.columns - 1, height: size.rows - 1, limit: listLimit
      ).lines)
  }

  private func text(_ snapshot: SpoolSnapshot) -> String {
    if json { return snapshot.json(limit: readLimit) + "\n" }
    let columns = Terminal.size(STDOUT_FILENO)?.columns
    // Lines for a pipe are not cut.
    let table = StatusTable(
      snapshot, Terminal.look(STDOUT_FILENO), width: columns.map { $0 - 1 } ?? 10_000, limit: listLimit)
    return table.lines.map { $0.trimmed + "\n" }.joined()
  }

  /// Users look for running and failed jobs first.
  private func listLimit(_ state: JobState) -> Int {
    if all { return .max }
    switch state {
    case .running: return 50
    case .failed: return 20
    default: return 10
    }
  }
}
