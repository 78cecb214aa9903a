internal import Spool
internal import Transfer

/// Whether jobs may start at all now, and if not, why: the gate, the disk's space, the output root, libcurl.
@WorkerLoop
final class Admission {
  /// What keeps all work from starting.
  enum Obstacle {
    /// What the gate said.
    case gate(String)
    case space
    /// Why there is no output root.
    case output(String)
  }

  /// The worker stays: that the disk is short is told at once, and not at the run's end.
  var stays = false
  private(set) var isAskingGate = false
  private let environment: JobEnvironment
  /// Ends the gate's command.
  private let childStop: ChildStop
  private var gateAnswer: Gate.Answer?
  private var askedAt: Int64?
  private var isSpaceShort = false
  private var outputProblem: String?
  private var hasLibcurl = false

  init(_ environment: JobEnvironment, _ childStop: ChildStop) {
    self.environment = environment
    self.childStop = childStop
  }

  /// Looks at all but libcurl.
  func mayStart() -> Bool {
    if environment.options.gate != nil, gateAnswer != .open || isGateAnswerOld { return false }
    return isOutputThere() && hasSpace()
  }

  /// Why not, as far as was looked; nil while the gate is asked.
  var obstacle: Obstacle? {
    if environment.options.gate != nil, isGateAnswerOld { return nil }
    if let outputProblem { return .output(outputProblem) }
    if isSpaceShort { return .space }
    switch gateAnswer {
    case nil, .open: return nil
    case .closed(let reason), .broken(let reason): return .gate(reason)
    }
  }

  private func hasSpace() -> Bool {
    guard let free = environment.space.freeIfShort else {
      isSpaceShort = false
      return true
    }
    if !isSpaceShort {
      // Not with --once, whose end tells of it: a line each minute is mail each minute, and nothing has failed.
      let fields = Fields().with("free", free).with("min-free", environment.space.kept)
      environment.log(Event("disk-short", stays ? .warning : .info, fields))
    }
    isSpaceShort = true
    return false
  }

  /// Whether payloads can be put in their place. Else jobs wait, and none fails.
  private func isOutputThere() -> Bool {
    do throws(OutputRootProblem) {
      _ = try environment.outputs.opened()
      if outputProblem != nil { environment.log(Event("output-back", .warning)) }
      outputProblem = nil
    } catch {
      if outputProblem == nil {
        environment.log(Event("output-missing", .error, Fields().with("reason", "\(error)")))
      }
      outputProblem = "\(error)"
    }
    return outputProblem == nil
  }

  private var isGateAnswerOld: Bool { askedAt.map { LoopExecutor.milliseconds() - $0 >= Gate.validity } ?? true }

  /// Asks the gate where its last answer is old. Running jobs are looked after meanwhile.
  func askGateIfDue() {
    guard let gate = environment.options.gate, isGateAnswerOld, !isAskingGate else { return }
    isAskingGate = true
    WorkerLoop.start {
      let answer = await gate.ask(self.childStop)
      self.isAskingGate = false
      if !self.childStop.isRequested { self.take(answer) }
      WorkerLoop.wakeUp()
    }
  }

  private func take(_ answer: Gate.Answer) {
    askedAt = LoopExecutor.milliseconds()
    let isNew = answer != gateAnswer
    gateAnswer = answer
    guard isNew else { return }
    switch answer {
    case .open: break
    case .closed(let reason): environment.log(Event("gate-closed", .info, Fields().with("reason", reason)))
    case .broken(let reason): environment.log(Event("gate-broken", .error, Fields().with("reason", reason)))
    }
  }

  /// Why libcurl cannot be loaded; nil where it is. Asked before the first job is looked at: without libcurl every URL
  /// would seem malformed.
  func libcurlProblem() -> String? {
    if hasLibcurl { return nil }
    do throws(TransferError) { try Libcurl.load() } catch { return error.description }
    hasLibcurl = true
    return nil
  }
}
