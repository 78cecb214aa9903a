internal import ArgumentParser
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SystemPackage

struct Status: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Shows the jobs of a spool and their progress.",
    usage: "spoolrun status [<options>] [<spool-or-name> ...]",
    discussion: """
      With names of jobs, tells what has happened to each of them, and what comes next.

      Only reads the spool, so it works whether or not a worker runs. Without --watch, rates are averages since the \
      attempt began. With --watch in a terminal, keys hold, release, retry or cancel a job; the key ? shows them all.
      """)

  @Flag(help: "Print one JSON object.") var json = false

  @Flag(help: "Print metrics for Prometheus, as OpenMetrics.") var metrics = false

  @Option(
    help: ArgumentHelp(
      "Write metrics to FILE (- for standard output), for node_exporter's textfile collector.", valueName: "file"),
    completion: .file(extensions: ["prom"])) var textfile: String?

  @Flag(name: .shortAndLong, help: "Refresh each second, until interrupted.") var watch = false

  @Flag(help: "List all jobs, however many there are.") var all = false

  @Argument(
    help: ArgumentHelp(
      "The spool directory (default: $SPOOLRUN_SPOOL, else spool), and jobs to tell of, as name or directory/name.",
      valueName: "spool-or-name"), completion: JobNameCompletion.kind) var arguments: [String] = []

  @OptionGroup var option: SpoolOption

  func validate() throws {
    if metrics || textfile != nil, json || watch || all {
      throw ValidationError("--metrics and --textfile do not go with --json, --watch and --all")
    }
    if metrics, textfile != nil { throw ValidationError("--metrics and --textfile cannot be used together") }
    if !named.jobs.isEmpty, metrics || textfile != nil || json || watch || all {
      throw ValidationError("names of jobs do not go with options other than --spool")
    }
  }

  /// The arguments: a spool first, unless --spool names it or the first is what a job of the default spool is called.
  private var named: (spool: String?, jobs: [String]) {
    guard let first = arguments.first, option.spool == nil else { return (option.spool, arguments) }
    let parents = first.split(at: "/", omittingEmptySubsequences: false).dropLast()
    let mayBeJob = parents.last.map { Directory(rawValue: String($0)) != nil } ?? true
    let isJob = mayBeJob && !isDirectory(first) && SpoolOpening.hasDefault
    return isJob ? (nil, arguments) : (first, Array(arguments.dropFirst()))
  }

  func run() throws {
    let named = named
    // With keys, it can do what the commands do. Whoever may read it may still watch it.
    let use = watch && hasKeys ? SpoolUse.dropping : .reading
    let spools = try SpoolOpening.openAll(named.spool, for: use, having: named.jobs.isEmpty ? .undone : .jobs)
    if spools.count > 1, json || watch || metrics || textfile != nil {
      let places = spools.map { escaped($0.location) }.joined(separator: ", ")
      throw ExitStatus.refusal("several of your gets are not done: name one with --spool: \(places)", by: "status")
    }
    // Whoever may not write to the spool sees it by this host's clock.
    for spool in spools { spool.learnClockToRead() }
    if !named.jobs.isEmpty { return try JobTelling(spools: spools, doubt: doubt).tell(of: named.jobs) }
    var failure: (any Error)?
    for (index, spool) in spools.enumerated() {
      if index > 0 { Terminal.print("") }
      if spools.count > 1 { Terminal.print("\(escaped(spool.location)):") }
      do { try ExitStatus.reporting(escaped(spool.location)) { try show(spool) } } catch { failure = failure ?? error }
    }
    if let failure { throw failure }
  }

  private func show(_ spool: Spool) throws(SpoolError) {
    if metrics || textfile != nil { return try writeMetrics(of: spool) }
    if watch { return try follow(spool) }
    guard let snapshot = try spool.unlessGone(SnapshotReader(spool, limit: readLimit).read()) else { return }
    Terminal.write(text(snapshot), to: STDOUT_FILENO)
    // The numbers are incomplete.
    if !snapshot.unreadable.isEmpty {
      throw SpoolError(call: .list, path: snapshot.unreadable[0].rawValue, errno: .permissionDenied)
    }
  }

  /// The first name may be meant for a spool.
  private func doubt(of name: [UInt8]) -> String {
    option.spool == nil && named.spool == nil && arguments.first.map { Array($0.utf8) } == name
      ? ", and no spool of this name" : ""
  }

  /// If this throws, the file is as it was.
  private func writeMetrics(of spool: Spool) throws(SpoolError) {
    var memory = CounterMemory()
    guard let textfile, textfile != "-" else {
      let metrics = try MetricsReader(spool).read(&memory)
      Terminal.write(metrics.text(textfile == nil ? .openMetrics : .text), to: STDOUT_FILENO)
      return
    }
    // A file of metrics has some hundred lines.
    let last = try ReplacedFile.read(textfile, limit: 1 << 20).map { String(decoding: $0, as: UTF8.self) }
    memory = last.flatMap { CounterMemory($0, of: spool.location) } ?? memory
    let metrics = try MetricsReader(spool).read(&memory)
    try ReplacedFile.write(Array((metrics.text(.text) + memory.text(of: spool.location)).utf8), to: textfile)
  }
}

extension Status {
  /// How many jobs of each state are read without --all.
  private static let mostRead = 1000

  private var readLimit: Int { all ? .max : Self.mostRead }

  private var hasWindow: Bool { !json && Terminal.isCapable(STDOUT_FILENO) }

  private var hasKeys: Bool { hasWindow && WatchTerminal.hasKeys }

  private func follow(_ spool: Spool) throws(SpoolError) {
    var series = SnapshotSeries(spool: spool, limit: readLimit)
    guard hasWindow else { return try printEachSecond(series) }
    guard let first = try series.next() else { return }
    var session = try WatchSession(series, first)
    for line in try session.run() { Terminal.print(line.trimmed) }
  }

  /// Until a signal arrives, or the reader closes its end. Where there is no window, or for programs.
  private func printEachSecond(_ series: consuming SnapshotSeries) throws(SpoolError) {
    let signals = try Terminal.stopSignals()
    while let snapshot = try series.next() {
      let next = Host.current.milliseconds() + 1000
      guard Terminal.write(text(snapshot) + (json ? "" : "\n"), to: STDOUT_FILENO) else { return }
      var polled = pollfd(fd: signals, events: Int16(POLLIN), revents: 0)
      if poll(&polled, 1, Int32(max(0, next - Host.current.milliseconds()))) > 0 { return }
    }
  }

  private func text(_ snapshot: SpoolSnapshot) -> String {
    if json { return snapshot.json(limit: readLimit) + "\n" }
    let size = Terminal.size(STDOUT_FILENO)
    // Lines for a pipe are not cut.
    let table = StatusTable(
      snapshot, Terminal.look(STDOUT_FILENO), width: size.map { $0.columns - 1 } ?? 10_000, limit: listLimit)
    var lines = table.lines
    // The prompt takes a row.
    if let size, lines.count >= size.rows { lines += [StyledLine(Terminal.look(STDOUT_FILENO))] + table.summary }
    return lines.map { $0.trimmed + "\n" }.joined()
  }

  /// Users look for running and failed jobs first.
  private func listLimit(_ state: JobState) -> Int {
    if all { return .max }
    switch state {
    case .running: return 50
    case .failed: return 20
    case .retrying, .interrupted, .paused, .waiting, .done: return 10
    }
  }
}

/// Prints what has happened to jobs that a person names.
struct JobTelling {
  let spools: [Spool]
  /// For each name, the files of gets that it means.
  var fetched: [[GetRecords.Fetched]] = []
  /// What else a name may be meant for that no job has.
  let doubt: ([UInt8]) -> String

  func tell(of jobs: [String]) throws {
    let readers = spools.map { ($0, JobStoryReader($0)) }
    var isFirst = true
    var failure: (any Error)?
    for (number, bytes) in RawArguments.bytes(of: jobs).enumerated() {
      let files = fetched.isEmpty ? [] : fetched[number]
      var isFound = false
      for (spool, reader) in readers {
        do {
          try ExitStatus.reporting(escaped(spool.location)) {
            let jobs = try MeantJobs.by(bytes, in: [spool], Directory.ofJobs)
            if jobs.doubt != nil, !files.isEmpty { return }
            if let doubt = jobs.doubt { throw ExitStatus.givenUp.after(doubt) }
            for name in jobs.names {
              guard let story = try spool.unlessGone(reader.lines(of: name, in: jobs.directory)) else { continue }
              Terminal.write((isFirst ? "" : "\n") + story.map { $0 + "\n" }.joined(), to: STDOUT_FILENO)
              (isFirst, isFound) = (false, true)
            }
          }
        } catch {
          (failure, isFound) = (failure ?? error, true)
        }
      }
      for file in files {
        Terminal.print(file.story)
        isFound = true
      }
      if isFound { continue }
      let places = spools.map { escaped($0.location) }.joined(separator: ", ")
      let what = spools.isEmpty ? "nothing of this name was fetched here" : "no such job in \(places)"
      Terminal.error("\(escaped(bytes)): \(what)\(doubt(bytes))")
      failure = failure ?? ExitStatus.givenUp.code
    }
    if let failure { throw failure }
  }
}

struct Explain: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "explain", abstract: "Explains a failure code, or a job.",
    discussion: """
      A code is a word such as http-404 or disk-full, as status, the log and the lines of a job have it. Without an \
      argument, lists all codes. The name of a job tells the same as status does.
      """)

  @OptionGroup var spool: SpoolOption

  @Argument(
    help: ArgumentHelp("A failure code, or a job as name or directory/name.", valueName: "code-or-name"),
    completion: JobNameCompletion.kind) var words: [String] = []

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
    let (spools, fetched) = try spool.openAllAndFetched(jobs)
    try JobTelling(spools: spools, fetched: fetched) { _ in
      ", and no failure code of this name: `spoolrun explain` lists them"
    }.tell(of: jobs)
  }
}
