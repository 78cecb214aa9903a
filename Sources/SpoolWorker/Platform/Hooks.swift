internal import Spool
internal import SystemPackage

/// Runs the executables in the spool's `hooks/`. `resolve` is asked for links; `verify` may reject a payload before it
/// is published; `deliver` passes it on; `done` and `failed` are notified. They get the facts of the job as environment
/// variables, never on a command line.
@WorkerLoop final class Hooks {
  enum Name: String {
    case resolve, verify, deliver, done, failed

    /// In seconds. A delivery may be a long upload.
    var timeLimit: Int { self == .deliver ? 86_400 : 300 }

    /// Whether the job's record tells of its failure, so that the log need not warn.
    fileprivate var isAnswered: Bool { self != .done && self != .failed }
  }

  let spool: Spool
  /// Stops the running hook when the worker stops, or when a person moves or removes the job.
  let stop: ChildStop
  let log: @WorkerLoop (Event) -> Void
  /// Whether the spool had any hooks when an attempt first wanted one. If they come later, they are for the next
  /// attempts.
  private(set) lazy var mayExist = (try? Hook.mayExist(in: spool)) != false

  init(spool: Spool, stop: ChildStop, log: @escaping @WorkerLoop (Event) -> Void) {
    (self.spool, self.stop, self.log) = (spool, stop, log)
  }

  enum Answer: Equatable {
    case yes
    case no(String)
    /// It could not be run, or ended without a verdict. The text says what is wrong, and of a gate what to do.
    case nothing(String)
  }

  /// Whether there is a hook `name`, even if it cannot be run. ``run(_:job:_:)`` reports why.
  func has(_ name: Name) -> Bool {
    if !mayExist { return false }
    do throws(SpoolError) { return try Hook.find(name.rawValue, in: spool) != nil } catch { return true }
  }

  func run(_ name: Name, job: FileName, _ facts: @autoclosure () -> [ChildProcess.Variable]) async -> Answer? {
    do throws(Defect) {
      guard let outcome = try await start(name, job: job, facts()) else { return nil }
      switch outcome.end {
      case .exited(0): return .yes
      // With a status from 126 on, a shell reports that a command could not be run or was ended by a signal (POSIX, sh,
      // EXIT STATUS).
      case .exited(1..<126): return .no(outcome.reason)
      default: return .nothing(outcome.reason)
      }
    } catch {
      return .nothing(error.reason)
    }
  }

  /// The same, for what it prints.
  /// - Throws: ``Defect``, which is logged, if it was not run.
  func start(
    _ name: Name, job: FileName, _ facts: @autoclosure () -> [ChildProcess.Variable]
  ) async throws(Defect) -> ChildProcess.Outcome? {
    if !mayExist { return nil }
    let reason: String
    do {
      switch try Hook.find(name.rawValue, in: spool) {
      case nil: return nil
      case .refused(let why): reason = why
      case .runnable(let path): return try await run(path, name, job, facts())
      }
    } catch {
      reason = error is Errno ? "cannot be run: \(error)" : "\(error)"
    }
    log(Event("hook-refused", .error, job: job, Fields().with("hook", name.rawValue).with("reason", reason)))
    throw Defect(line: nil, reason: reason)
  }

  private func run(_ path: String, _ name: Name, _ job: FileName, _ facts: [ChildProcess.Variable])
    async throws(Errno) -> ChildProcess.Outcome
  {
    let environment: [ChildProcess.Variable] =
      [
        .init("SPOOLRUN_HOOK", name.rawValue), .init("SPOOLRUN_JOB", job.bytes),
        .init("SPOOLRUN_SPOOL", (try? realPath(spool.location)) ?? spool.location),
      ]
      + facts
    // The links that `resolve` prints contain secrets.
    let outcome = try await ChildProcess(
      arguments: [path], environment: environment, seconds: name.timeLimit, stop: stop,
      kept: spool.descriptor(for: path), answers: name == .resolve
    ).run()
    let hook = Fields().with("hook", name.rawValue)
    for line in outcome.output.split(separator: 0x0A).prefix(100) {
      log(Event("hook-output", .info, job: job, hook.with("text", escaped(line))))
    }
    if !outcome.isSuccess {
      log(Event("hook-failed", name.isAnswered ? .info : .warning, job: job, hook.with("reason", outcome.reason)))
    }
    return outcome
  }
}

/// A command that decides whether jobs may start now: the gate is open if its exit status is 0.
package struct Gate: Sendable {
  private let option: String
  /// For `/bin/sh -c`.
  private let command: String

  /// How long an answer is valid, in milliseconds.
  static let validity: Int64 = 10_000
  /// In seconds.
  private static let timeLimit = 30

  package init(_ command: String, option: String = "--gate") { (self.command, self.option) = (command, option) }

  /// Closed while NetworkManager reports or guesses that the connection is metered: the property Metered of
  /// org.freedesktop.NetworkManager is 1 for yes and 3 for "guess yes" (NMMetered).
  package static let unmeteredOnly = Gate(
    """
    service=org.freedesktop.NetworkManager
    answer=$(busctl --system get-property $service /org/freedesktop/NetworkManager $service Metered 2>/dev/null) || {
      echo 'NetworkManager and busctl are needed, and do not answer; use --gate COMMAND instead'
      exit 127
    }
    case $answer in
      'u 1' | 'u 3') echo 'the connection is metered'; exit 1 ;;
    esac
    """, option: "--unmetered-only")

  func ask(_ stop: ChildStop) async -> Hooks.Answer {
    let outcome: ChildProcess.Outcome
    do throws(Errno) {
      outcome = try await ChildProcess(
        arguments: ["/bin/sh", "-c", command], seconds: Self.timeLimit, stop: stop
      ).run()
    } catch {
      return .nothing("\(option): /bin/sh cannot be run: \(error)")
    }
    switch outcome.end {
    case .exited(0): return .yes
    // Also where a signal has killed the shell's command (POSIX, sh, EXIT STATUS).
    case .timedOut, .signalled, .exited(129...192): return .nothing("\(option): no answer: \(outcome.reason)")
    // sh could not find or run it.
    case .exited(126), .exited(127): return .nothing("\(option): the command cannot be run: \(outcome.reason)")
    default: return .no("\(option): \(outcome.reason)")
    }
  }
}
