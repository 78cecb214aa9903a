internal import Glibc
internal import Spool
internal import Synchronization
internal import SystemPackage

/// Records each call of a worker, and kills the process or fails the call where a plan says so.
final class FaultHook: CallHook {
  private struct State {
    /// By plan.
    var counted: [Int]
    /// The call after which the process dies.
    var lastCall: (kind: Call.Kind, path: String)?
    var hasStopped = false
  }

  private let recorder: CallRecorder
  private let plans: [FaultPlan]
  /// Whether renameat2(RENAME_NOREPLACE) is to look as on a file system that does not know it.
  private let lacksNoReplace: Bool
  /// The same of renameat2(RENAME_EXCHANGE), by which alone files of `tmp/` get a name outside of `cur/` here.
  private let lacksExchange: Bool
  /// Whether the process gets a SIGTERM at the first byte of data.
  private let stopsAtData: Bool
  private let state: Mutex<State>

  init(_ recorder: CallRecorder, plans: [FaultPlan], lacksNoReplace: Bool, lacksExchange: Bool, stopsAtData: Bool) {
    self.recorder = recorder
    self.plans = plans
    self.lacksNoReplace = lacksNoReplace
    self.lacksExchange = lacksExchange
    self.stopsAtData = stopsAtData
    state = Mutex(State(counted: plans.map { _ in 0 }))
  }

  func before(_ call: Call) -> Fault? {
    state.withLock { state in
      let fault = planned(call, &state)
      if case .fail(let errno) = fault {
        recorder.note(.failed, call, "\(errno)")
        return fault
      }
      // Only the moves between states are made without replacing; the others start or end in tmp/, or end in cur/.
      let (isOut, isDraft) = (call.path.hasPrefix("cur/"), call.path.hasPrefix("tmp/"))
      let mayReplace = call.path.contains(" cur/") || call.path.contains(" tmp/")
      if call.kind == .rename, !mayReplace, lacksNoReplace && isOut || lacksExchange && isDraft {
        recorder.note(.failed, call, "\(Errno.invalidArgument)")
        return .fail(.invalidArgument)
      }
      recorder.note(.begun, call)
      return fault
    }
  }

  func after(_ call: Call) {
    state.withLock { state in
      recorder.note(.returned, call)
      if let last = state.lastCall, last.kind == call.kind, last.path == call.path { die() }
      if stopsAtData, !state.hasStopped, call.kind == .write, call.path.hasSuffix(".part") {
        state.hasStopped = true
        kill(getpid(), SIGTERM)
      }
    }
  }

  /// What the first plan that strikes here does; the others have had their chance.
  private func planned(_ call: Call, _ state: inout State) -> Fault? {
    var fault: Fault?
    for (index, plan) in plans.enumerated() where plan.counted.contains(call.kind) {
      state.counted[index] += 1
      if state.counted[index] == plan.number { recorder.note(.struck, call, "\(index)") }
      if fault == nil { fault = effect(of: plan, at: state.counted[index], call, &state) }
    }
    return fault
  }

  private func effect(of plan: FaultPlan, at number: Int, _ call: Call, _ state: inout State) -> Fault? {
    if case .failFrom(let errno) = plan.action { return number >= plan.number ? .fail(errno) : nil }
    guard number == plan.number else { return nil }
    switch plan.action {
    case .killBefore: die()
    case .killAfter:
      state.lastCall = (call.kind, call.path)
      return nil
    case .killWithin(let length):
      state.lastCall = (call.kind, call.path)
      return .short(length)
    case .fail(let errno), .failFrom(let errno): return .fail(errno)
    case .short(let length): return .short(length)
    }
  }

  private func die() -> Never {
    kill(getpid(), SIGKILL)
    // The signal is delivered before kill(2) returns to this thread, unless it is blocked, which SIGKILL cannot be.
    fatalError("survived SIGKILL")
  }
}
