internal import Spool

/// Decides whether jobs may start now, and if not, why: the gate, the disk space, the output root.
@WorkerLoop final class Admission {
  enum Obstacle {
    case gate(String)
    case space
    case output(String)
    /// All jobs that are left wait for servers or proxies that rest.
    case servers
  }

  /// Whether the worker runs until it is stopped. Then a shortage of disk space is a warning at once, not at the end of
  /// the run.
  var stays = false
  private(set) var isAskingGate = false
  private let environment: JobEnvironment
  private let childStop: ChildStop
  private var gateAnswer: Hooks.Answer?
  private var askedAt: Int64?
  private var isSpaceShort = false
  private var outputProblem: String?

  init(_ environment: JobEnvironment, _ childStop: ChildStop) {
    (self.environment, self.childStop) = (environment, childStop)
  }

  func mayStart() -> Bool {
    if environment.options.gate != nil, gateAnswer != .yes || isGateAnswerOld { return false }
    return isOutputThere() && hasSpace()
  }

  /// Why no job may start, by the last check; nil while the gate is asked.
  var obstacle: Obstacle? { environment.options.gate != nil && isGateAnswerOld ? nil : lastObstacle }

  /// The same, and while the gate is asked again, what it said last.
  var lastObstacle: Obstacle? {
    if let outputProblem { return .output(outputProblem) }
    if isSpaceShort { return .space }
    switch gateAnswer {
    case nil, .yes: return nil
    case .no(let reason), .nothing(let reason): return .gate(reason)
    }
  }

  private func hasSpace() -> Bool {
    guard let free = environment.space.freeIfShort else {
      isSpaceShort = false
      return true
    }
    if !isSpaceShort {
      // With --once this is no warning, because the end of the run reports it: under cron, a line each minute would be
      // a mail each minute, although nothing has failed.
      let fields = Fields().with("free", free).with("min-free", environment.space.kept)
      environment.log(Event("disk-short", stays ? .warning : .info, fields))
    }
    isSpaceShort = true
    return false
  }

  /// Whether payloads can be published. If not, jobs wait and do not fail.
  private func isOutputThere() -> Bool {
    do throws(OutputRootProblem) {
      _ = try environment.outputs.opened()
      if outputProblem != nil { environment.log(Event("output-back", .warning)) }
      outputProblem = nil
    } catch {
      if outputProblem == nil { environment.log(Event("output-missing", .error, Fields().with("reason", "\(error)"))) }
      outputProblem = "\(error)"
    }
    return outputProblem == nil
  }

  private var isGateAnswerOld: Bool { askedAt.map { LoopExecutor.milliseconds() - $0 >= Gate.validity } ?? true }

  /// Asks the gate if its last answer has expired. The loop continues meanwhile.
  func askGateIfDue() {
    guard let gate = environment.options.gate, isGateAnswerOld, !isAskingGate else { return }
    isAskingGate = true
    WorkerLoop.start {
      let answer = await gate.ask(self.childStop)
      self.isAskingGate = false
      // The signal that stops the worker may have ended the command as well.
      self.environment.lookForStop()
      if !self.childStop.isRequested { self.take(answer) }
      WorkerLoop.wakeUp()
    }
  }

  private func take(_ answer: Hooks.Answer) {
    askedAt = LoopExecutor.milliseconds()
    let isNew = answer != gateAnswer
    gateAnswer = answer
    guard isNew else { return }
    switch answer {
    case .yes: break
    case .no(let reason): environment.log(Event("gate-closed", .info, Fields().with("reason", reason)))
    case .nothing(let reason): environment.log(Event("gate-broken", .error, Fields().with("reason", reason)))
    }
  }
}
