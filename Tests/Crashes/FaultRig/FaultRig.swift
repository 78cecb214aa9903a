internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolWorker
internal import SystemPackage

/// `FaultRig SPOOL record=FILE [fault=PLAN,...] [checkpoint=BYTES] [journal=BYTES] [directory=DIR] [jobs=N]
/// [connections=N] [probation=MILLISECONDS] [replace=unknown] [stop=data] [watch=yes] [archive=SECONDS]
/// [steer=CHANGE] [exchange=unknown] [get=DIR state=DIR job=NAME text=FILE]`: a worker as `spoolrun --once` is one, or
/// with `archive` what `spoolrun clean --archive` does, with `steer` a command of ``SteeringRun``, with `get` a
/// ``GetRun``; with the seam of its system calls recorded and, by plan, broken.
/// Its exit status is that of spoolrun(1). `FaultRig serve`: see ``ForkServer``.
@main
struct FaultRig {
  static func main() {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments == ["serve"] { ForkServer.serve(run) }
    exit(run(arguments))
  }

  private static func run(_ arguments: [String]) -> Int32 {
    var options: [String: String] = [:]
    for argument in arguments.dropFirst() {
      let parts = argument.split(separator: "=", maxSplits: 1).map(String.init)
      if parts.count == 2 { options[parts[0]] = parts[1] }
    }
    guard let location = arguments.first, let path = options["record"],
      let recorder = CallRecorder(path, spool: location)
    else {
      return 64
    }
    guard let plans = options["fault"].map({ FaultPlan.list($0) }) ?? [] else { return 64 }
    let hook = FaultHook(
      recorder, plans: plans, lacksNoReplace: options["replace"] == "unknown",
      lacksExchange: options["exchange"] == "unknown", stopsAtData: options["stop"] == "data")
    if let change = options["steer"] {
      return SteeringRun.run(location, change: change, System(hook: hook)) { say($0) }
    }
    if let age = options["archive"].flatMap({ Int64($0) }) {
      return ArchiveRun.run(location, age: age, System(hook: hook)) { say($0) }
    }
    if let parent = options["get"] {
      guard let state = options["state"], let job = options["job"].flatMap({ JobName(FileName($0)) }),
        let text = options["text"].flatMap({ try? ReplacedFile.read($0, limit: 4096) })
      else { return 64 }
      var workerOptions = WorkerOptions()
      workerOptions.userAgent = "FaultRig"
      let run = GetRun(
        parent: parent, state: state, job: job, text: String(decoding: text, as: UTF8.self),
        system: System(hook: hook))
      return run.run(workerOptions) { say($0) }
    }
    return work(location, options, System(hook: hook))
  }

  /// What `Run` does.
  private static func work(_ location: String, _ options: [String: String], _ system: System) -> Int32 {
    umask(0o077)
    let signals = spoolrun_stop_signals()
    let (owner, boot) = WorkerID.current()
    var workerOptions = WorkerOptions()
    workerOptions.checkpointBytes = options["checkpoint"].flatMap { UInt64($0) } ?? 65_536
    workerOptions.longJournal = options["journal"].flatMap { Int64($0) } ?? workerOptions.longJournal
    workerOptions.directory = options["directory"]
    workerOptions.jobs = options["jobs"].flatMap { Int($0) } ?? 8
    workerOptions.connections = options["connections"].flatMap { Int($0) } ?? 1
    workerOptions.chunkSize = 4096
    workerOptions.probation = options["probation"].flatMap { Int64($0) } ?? workerOptions.probation
    workerOptions.userAgent = "FaultRig"
    let spool: Spool
    do throws(SpoolError) {
      spool = try Spool(location, owner: owner, boot: boot, system: system)
    } catch {
      say("\(error)")
      return error.errno == .noSuchFileOrDirectory || error.errno == .notDirectory ? 66 : 74
    }
    do {
      workerOptions.defaults = try spool.defaults()
    } catch {
      say("defaults: \(error)")
      return 78
    }
    let watches = options["watch"] == "yes"
    let outcome = WorkerLoop.run { [workerOptions] () async -> Result<RunSummary, OutputRootProblem> in
      do throws(OutputRootProblem) {
        let worker = try Worker(spool, workerOptions) { say("\($0.name) \($0.fields.text)") }
        guard watches else { return .success(await worker.runOnce(stopSignals: signals)) }
        do throws(SpoolError) {
          return .success(try await worker.watch(stopSignals: signals))
        } catch {
          say("watch: \(error)")
          exit(74)
        }
      } catch {
        return .failure(error)
      }
    }
    switch outcome {
    case .failure(let error):
      say("the output root: \(error)")
      guard case .missing(let error) = error else { return 78 }
      return error.errno == .noSuchFileOrDirectory ? 73 : 74
    case .success(let summary):
      if let error = summary.spoolError {
        say("\(error)")
        return error.call == .create || error.call == .mkdir ? 73 : 74
      }
      if summary.givenUp > 0 { return 1 }
      return summary.waiting > 0 ? 75 : 0
    }
  }

  /// For the report of a failed test.
  private static func say(_ text: String) {
    let bytes = Array("\(text)\n".utf8)
    _ = write(STDERR_FILENO, bytes, bytes.count)
  }
}
