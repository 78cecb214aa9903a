internal import ArgumentParser
internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolStatus
internal import SpoolWorker
internal import SystemPackage
internal import Transfer

struct Run: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    // As a root with this name, the parser does not look for --generate-completion-script, which would parse the
    // arguments twice more in each run. `Main` leaves that option to `Spoolrun`.
    _superCommandName: "spoolrun", abstract: "Downloads the jobs of a spool (the default command).",
    discussion: """
      Keeps running and starts each job when it is dropped or when its next attempt is due. With --once, runs all jobs \
      that are due and exits; use this from cron. Several workers can share one spool. Prints nothing on success, \
      unless standard error is a terminal or the journal of systemd.
      """)

  @Flag(help: "Run all jobs that are due, then exit.") var once = false

  @Flag(help: "Run until no job waits or runs, then exit; waits for next attempts, rests and space.")
  var untilDone = false

  @Option(name: [.customShort("j", allowingJoined: true), .long], help: "Maximum number of parallel transfers.")
  var jobs = 20

  @Option(
    help: """
      Maximum number of parallel transfers from one server (scheme, host and port). (default: as many as bring more, \
      at most 16)
      """) var perHost: Int?

  @Option(
    help: ArgumentHelp(
      "Give jobs up when their server has answered nobody for so long, if they do not set this. (default: 5d)",
      valueName: "time")) var patience: String?

  @Option(help: "Connections for each http or https transfer, if the job does not set this.") var connections = 1

  @Option(help: "Maximum number of connections for one transfer, even if its job sets more.") var maxConnections = 32

  @Option(
    help: ArgumentHelp(
      "Memory that all transfers over several connections share. (default: a quarter of the memory, at most 512M)",
      valueName: "size")) var maxMemory: String?

  @Option(
    help: ArgumentHelp("Largest range that one of several connections requests. (default: 4M)", valueName: "size"))
  var chunkSize: String?

  @Option(name: .shortAndLong, help: "Directory for the downloaded files. (default: files in the spool)")
  var directory: String?

  @Option(help: ArgumentHelp("URL schemes to allow, out of http, https, ftp, ftps and sftp.", valueName: "list"))
  var protocols = AllowedSchemes.standard.sorted().joined(separator: ",")

  @Option(
    name: .customLong("cacert"),
    help: ArgumentHelp("PEM file of the certificate authorities to trust. (default: the system's)", valueName: "file"))
  var caFile: String?

  @Option(
    help: ArgumentHelp(
      "Maximum bytes per second of all transfers together, such as 2M, or 'low 500k, 2M 08:00-23:00, none'.",
      valueName: "rate")) var limitRate: String?

  @Option(help: ArgumentHelp("Refuse larger files, such as 10G. A job can only lower this.", valueName: "size"))
  var maxSize: String?

  @Option(help: ArgumentHelp("Disk space to keep free, such as 10G. Jobs wait while there is less.", valueName: "size"))
  var minFree: String?

  @Option(help: ArgumentHelp("Start jobs only while this shell command exits with status 0.", valueName: "command"))
  var gate: String?

  @Flag(help: "Start no jobs while NetworkManager reports, or guesses, that the connection is metered.")
  var unmeteredOnly = false

  @Option(
    help: ArgumentHelp(
      "Read the whole spool again after this time without work. (default: 60s, or 10s where inotify is blind)",
      valueName: "time")) var rescan: String?

  @Option(
    help: ArgumentHelp(
      "Take over jobs of other hosts after this time without a sign of life; the same on all hosts. (default: 60s)",
      valueName: "time")) var lease: String?

  @Option(
    help: ArgumentHelp(
      "The name of this host in the spool: letters, digits, - and _. (default: its host name)", valueName: "text"))
  var hostID: String?

  @Flag(name: .shortAndLong, help: "Log each step.") var verbose = false

  @Option(help: "Format of the log: text or json.") var logFormat = LogFormat.text

  @Option(help: ArgumentHelp("Show progress bars: auto, always or never.", valueName: "when"))
  var progress = ProgressMode.auto

  @OptionGroup var spool: SpoolArgument

  func validate() throws { _ = try checkedOptions() }

  /// What the options say, as far as it does not depend on the spool.
  private func checkedOptions() throws -> WorkerOptions {
    var options = WorkerOptions()
    if progress == .always, logFormat == .json {
      throw ValidationError("--progress always and --log-format json cannot be used together")
    }
    if once, untilDone { throw ValidationError("--once and --until-done cannot be used together") }
    options.endsWhenDone = untilDone
    options.jobs = try count("--jobs", jobs, 1...1000)
    if let perHost { (options.perHost, options.perHostGrows) = (try count("--per-host", perHost, 1...1000), false) }
    options.patience = try seconds(of: "--patience", patience, "from 1s to 365d, such as 5d") ?? options.patience
    options.connections = try count("--connections", connections, JobRequest.connectionRange)
    options.maxConnections = try count("--max-connections", maxConnections, JobRequest.connectionRange)
    guard connections <= maxConnections else {
      throw ValidationError("--connections \(connections) is more than --max-connections \(maxConnections)")
    }
    options.maxMemory = try bytes("--max-memory", maxMemory)
    // The minimum catches a missing unit: 64 instead of 64M.
    if let size = options.maxMemory, size < 1 << 20 {
      throw ValidationError("--max-memory must be at least 1M, such as 64M")
    }
    options.chunkSize = try bytes("--chunk-size", chunkSize) ?? options.chunkSize
    guard (1024...1 << 30).contains(options.chunkSize) else {
      throw ValidationError("--chunk-size must be from 1k to 1G")
    }
    do throws(Defect) { try options.setLimitRate(limitRate) } catch {
      throw ValidationError("--limit-rate \(error.reason)")
    }
    options.maxSize = try bytes("--max-size", maxSize)
    options.minFree = try bytes("--min-free", minFree) ?? 0
    if unmeteredOnly, gate != nil { throw ValidationError("--unmetered-only and --gate cannot be used together") }
    options.gate = unmeteredOnly ? .unmeteredOnly : gate.map { Gate($0) }
    let rescan = try seconds(of: "--rescan", rescan, "from 1s to 1h, such as 30s") { $0 <= 3600 }
    options.rescan = rescan.map { Int64($0) * 1000 }
    _ = try seconds(of: "--lease", lease, "from 5s to 1d, such as 60s") { Spool.leaseRange.contains(Int64($0)) }
    if let hostID, !WorkerID.isClean(hostID) {
      throw ValidationError("--host-id must be 1 to 40 letters, digits, - and _")
    }
    options.protocols = AllowedSchemes.parse(protocols) ?? []
    guard !options.protocols.isEmpty else {
      throw ValidationError("--protocols must be a list of http, https, ftp, ftps and sftp, such as http,https,sftp")
    }
    options.userAgent = "spoolrun/\(Spoolrun.configuration.version)"
    return options
  }

  private func count(_ option: String, _ count: Int, _ range: ClosedRange<Int>) throws -> Int {
    if range.contains(count) { return count }
    throw ValidationError("\(option) must be a number from \(range.lowerBound) to \(range.upperBound)")
  }

  private func bytes(_ option: String, _ value: String?) throws -> UInt64? {
    guard let value else { return nil }
    guard let count = byteCount(value), count > 0 else {
      throw ValidationError("\(option) must be a number of bytes, such as 500k, 2M or 10G")
    }
    return count
  }

  func run() throws {
    umask(0o077)
    let signals = try ExitStatus.reporting("cannot watch for signals") { try Terminal.stopSignals() }
    var spool = try self.spool.open(mayBeCommand: true, host: hostID)
    if let path = try? realPath(spool.location), path.ends(with: "/\(GetDirectory.name)") {
      throw ExitStatus.usage.after(
        "\(escaped(spool.location)) is the spool of a `spoolrun get`: the same command, in the same directory, goes on")
    }
    // What a gate says may take long, and it may be closed.
    let libcurl = gate == nil && !unmeteredOnly ? LibcurlAhead(for: spool) : nil
    defer { libcurl?.finish() }
    var total = RunSummary()
    // A spool can be replaced by another at the same path: then a new worker starts there.
    let output = RunOutput(spool, progress, logFormat, isVerbose: verbose)
    while let next = try run(spool, signals, output, &total) { spool = next }
    output.close(total, isOnce: once || untilDone)
    if let obstacle = total.obstacle { Terminal.error(obstacle) }
    if let error = total.spoolError { Terminal.error("\(escaped(spool.location)): \(error)") }
    let status = ExitStatus(total, on: spool.kind)
    if status != .success { throw status.code }
  }

  /// Runs a worker on one spool until it ends.
  /// - Returns: the spool that has replaced this one meanwhile, or nil.
  private func run(_ spool: Spool, _ signals: Int32, _ output: RunOutput, _ total: inout RunSummary) throws -> Spool? {
    let options = try workerOptions(spool)
    AllowedSchemes.note(options.protocols, in: spool, isVerbose: verbose)
    let limit = spoolrun_raise_descriptor_limit(UInt64(options.mostDescriptors))
    guard limit >= options.descriptors else {
      throw ExitStatus.configuration.after(
        """
        --jobs \(jobs) needs \(options.descriptors) open files, but the limit is \(limit): lower --jobs, or raise the \
        limit with ulimit -n
        """)
    }
    do throws(StartProblem) {
      defer { output.bars?.finish() }
      let end = try WorkerLoop.run { () async throws(StartProblem) -> (summary: RunSummary, successor: Spool?) in
        let worker: Worker
        do throws(OutputRootProblem) {
          worker = try Worker(spool, options) { output.printer.print($0) }
        } catch {
          throw .output(error)
        }
        output.follow(worker)
        do throws(SpoolError) {
          let summary = once ? await worker.runOnce(stopSignals: signals) : try await worker.watch(stopSignals: signals)
          return (summary, worker.successor)
        } catch {
          throw .watch(error)
        }
      }
      total.add(end.summary)
      return end.successor
    } catch {
      throw error.told(on: spool)
    }
  }

  private enum StartProblem: Error {
    case output(OutputRootProblem)
    case watch(SpoolError)

    /// The exit status, after a message.
    func told(on spool: Spool) -> any Error {
      func status(_ error: SpoolError) -> ExitStatus {
        error.errno == .noSuchFileOrDirectory ? .cannotCreate : ExitStatus(error, on: spool.kind)
      }
      switch self {
      case .watch(let error):
        return status(error).after("cannot watch the spool: \(error): run spoolrun --once from cron")
      case .output(.missing(let error)): return status(error).after("the output directory: \(error)")
      case .output(.misplaced(let reason)), .output(.moved(let reason)): return ExitStatus.configuration.after(reason)
      }
    }
  }

  private func workerOptions(_ spool: Spool) throws -> WorkerOptions {
    var options = try checkedOptions()
    options.directory = try directory.map { try absolute($0) }
    options.takeServiceManager()
    options.tellsSuccess = verbose || LogReader.current != .other
    try options.takeDefaults(of: spool, authorities: caFile)
    try options.prepareSharing(of: spool, lease: lease, isVerbose: verbose)
    return options
  }

  /// Receipts name the output root, so its path must be valid from any working directory.
  private func absolute(_ path: String) throws -> String {
    do throws(Errno) { return try realPath(path) } catch {
      throw ExitStatus.cannotCreate.after("--directory \(escaped(path)): \(error)")
    }
  }
}

/// What a run shows on standard error: the log, the progress bars below it, and on a terminal what came of it.
private struct RunOutput: Sendable {
  let bars: StatusBars?
  let printer: EventPrinter
  private let hasClosing: Bool
  private let began = Host.current.milliseconds()

  init(_ spool: Spool, _ progress: ProgressMode, _ format: LogFormat, isVerbose: Bool) {
    let bars = StatusBars(progress, format)
    self.bars = bars
    printer = EventPrinter(
      of: spool.location, isVerbose: isVerbose, format: format, reader: .current, Terminal.look(STDERR_FILENO)
    ) { text in if let bars { bars.print(text) } else { Terminal.log(text) } }
    hasClosing = LogReader.current == .terminal && format == .text
  }

  @WorkerLoop func follow(_ worker: Worker) { if let bars { worker.onProgress = { bars.update($0) } } }

  /// Says what came of the run, unless nothing could be done.
  func close(_ summary: RunSummary, isOnce: Bool) {
    guard hasClosing, summary.obstacle == nil, summary.spoolError == nil else { return }
    let seconds = (Host.current.milliseconds() - began + 500) / 1000
    let closing = RunClosing(summary, seconds: seconds, isOnce: isOnce, waiting: printer.waiting, now: .now())
    if let line = closing.line(Terminal.look(STDERR_FILENO)) { Terminal.log("spoolrun: \(line.text)") }
  }
}
