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
      attempt began. With --watch in a terminal, keys hold, release, retry or cancel a job; the key ? shows them all.
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
    let parents = first.split(at: "/", omittingEmptySubsequences: false).dropLast()
    let mayBeJob = parents.last.map { Directory(rawValue: String($0)) != nil } ?? true
    let isJob = mayBeJob && !isDirectory(first) && isDirectory(SpoolOpening.defaultLocation)
    return isJob ? (nil, arguments) : (first, Array(arguments.dropFirst()))
  }

  private func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  private var output: StatusOutput { StatusOutput(json: json, all: all) }

  func run() throws {
    let named = named
    // With keys, it can do what the commands do. Whoever may read it may still watch it.
    let spool = try SpoolOpening.open(named.spool, for: watch && output.hasKeys ? .dropping : .reading)
    // Whoever may not write to the spool sees it by this host's clock.
    try? spool.learnClock()
    do {
      if !named.jobs.isEmpty {
        try tell(of: named.jobs, in: spool)
      } else if metrics || textfile != nil {
        try StatusMetrics(spool: spool, textfile: textfile).run()
      } else if watch {
        try output.watch(spool)
      } else {
        let snapshot = try SnapshotReader(spool, limit: output.readLimit).read()
        Terminal.write(output.text(snapshot), to: STDOUT_FILENO)
        // The numbers are incomplete.
        if !snapshot.unreadable.isEmpty {
          throw SpoolError(call: .list, path: snapshot.unreadable[0].rawValue, errno: .permissionDenied)
        }
      }
    } catch let error as SpoolError {
      Terminal.error("\(escaped(spool.location)): \(error)")
      throw ExitStatus(error).code
    }
  }

  /// The first name may be meant for a spool.
  private func doubt(of name: [UInt8]) -> String {
    option.spool == nil && named.spool == nil && arguments.first.map { Array($0.utf8) } == name
      ? ", and no spool of this name" : ""
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
        Terminal.error("\(escaped(bytes)): no such job in \(escaped(spool.location))\(doubt(of: bytes))")
        isComplete = false
      }
    }
    if !isComplete { throw ExitStatus.givenUp.code }
  }
}
