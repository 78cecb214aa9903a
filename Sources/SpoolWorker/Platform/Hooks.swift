internal import Spool
internal import SystemPackage

/// Runs the executables in the spool's `hooks/`. `verify` may reject a payload before it is published; `done` and
/// `failed` are notified. They get the facts of the job as environment variables, never on a command line.
@WorkerLoop
struct Hooks {
  enum Name: String { case verify, done, failed }

  /// The time limit of a hook, in seconds.
  static let timeLimit = 300

  let spool: Spool
  /// Stops the running hook when the worker stops, or when a person moves or removes the job.
  let stop: ChildStop
  let log: @WorkerLoop (Event) -> Void

  /// The variables of the `failed` hook. A missing fact is an empty value.
  /// - Parameter record: the fields of a `failed:` line.
  static func failure(_ record: Fields) -> [ChildProcess.Variable] {
    [("CODE", "code"), ("REASON", "reason"), ("LINE", "line"), ("ATTEMPTS", "attempt")].map { name, key in
      .init("SPOOLRUN_\(name)", record[key] ?? "")
    }
  }

  enum Answer {
    case yes
    case no(String)
    /// It could not be run, or ended without a verdict.
    case nothing(String)
  }

  /// Whether there is a hook `name`, even if it cannot be run. ``run(_:job:_:)`` reports why.
  func has(_ name: Name) -> Bool {
    do throws(SpoolError) { return try spool.hook(name.rawValue) != nil } catch { return true }
  }

  /// Runs the hook `name`; nil if there is none.
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
      // With a status from 126 on, a shell reports that a command could not be run or was ended by a signal (POSIX, sh,
      // EXIT STATUS).
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
