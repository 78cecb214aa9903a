internal import Spool
internal import SystemPackage

/// The executables in the spool's `hooks/`: `verify` may reject a payload before it is published, `done` and `failed` are told.
/// They get the job's facts in the environment and never on a command line.
@WorkerLoop
struct Hooks {
  enum Name: String { case verify, done, failed }

  /// Seconds that a hook may take.
  static let timeLimit = 300

  let spool: Spool
  /// Ends the one that runs: the worker stops, or a person took its job away.
  let stop: ChildStop
  let log: @WorkerLoop (Event) -> Void

  /// What `failed` is told: each fact, empty where there is none.
  /// - Parameter record: the fields of a `failed:` line.
  static func failure(_ record: Fields) -> [ChildProcess.Variable] {
    [("CODE", "code"), ("REASON", "reason"), ("LINE", "line"), ("ATTEMPTS", "attempt")].map { name, key in
      .init("SPOOLRUN_\(name)", record[key] ?? "")
    }
  }

  enum Answer {
    case yes
    case no(String)
    /// It could not be asked, or was ended before it could say anything.
    case nothing(String)
  }

  /// Whether there is a hook `name`, whatever may be wrong with it, which is told when it is to run.
  func has(_ name: Name) -> Bool {
    do throws(SpoolError) { return try spool.hook(name.rawValue) != nil } catch { return true }
  }

  /// Runs the hook `name` if there is one; nil where there is none.
  func run(_ name: Name, job: FileName, _ facts: @autoclosure () -> [ChildProcess.Variable]) async -> Answer? {
    do throws(SpoolError) {
      switch try spool.hook(name.rawValue) {
      case nil: return nil
      case .refused(let reason):
        log(Event("hook-refused", .error, job: job, Fields().with("hook", name.rawValue).with("reason", reason)))
        return .nothing(reason)
      case .runnable(let path):
        return await run(path, name, job, facts())
      }
    } catch {
      log(Event("hook-refused", .error, job: job, Fields().with("hook", name.rawValue).with("reason", "\(error)")))
      return .nothing("\(error)")
    }
  }

  private func run(_ path: String, _ name: Name, _ job: FileName, _ facts: [ChildProcess.Variable]) async -> Answer {
    let environment: [ChildProcess.Variable] =
      [
        .init("SPOOLRUN_HOOK", name.rawValue), .init("SPOOLRUN_JOB", job.bytes),
        .init("SPOOLRUN_SPOOL", spool.location),
      ]
      + facts
    do throws(Errno) {
      let outcome = try await ChildProcess(
        arguments: [path], environment: environment, seconds: Self.timeLimit, stop: stop
      ).run()
      for line in outcome.output.split(separator: 0x0A).prefix(100) {
        log(Event("hook-output", .info, job: job, Fields().with("hook", name.rawValue).with("line", escaped(line))))
      }
      if !outcome.isSuccess {
        log(
          Event(
            "hook-failed", name == .verify ? .info : .warning, job: job,
            Fields().with("hook", name.rawValue).with("reason", outcome.reason)))
      }
      switch outcome.end {
      case .exited(0): return .yes
      // From 126 on a shell says that a command could not be run, or was ended by a signal (POSIX, sh, EXIT STATUS).
      case .exited(1..<126): return .no(outcome.reason)
      default: return .nothing(outcome.reason)
      }
    } catch {
      log(
        Event(
          "hook-refused", .error, job: job,
          Fields().with("hook", name.rawValue).with("reason", "cannot be run: \(error)")))
      return .nothing("cannot be run: \(error)")
    }
  }
}
