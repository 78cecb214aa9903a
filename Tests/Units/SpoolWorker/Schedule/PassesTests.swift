import Testing

@testable import Spool
@testable import SpoolWorker

/// Which directory is read next.
@Suite struct PassesTests {
  /// Begins what is ready, as a worker does.
  private func begin(_ passes: inout Passes) -> [Directory] {
    let ready = passes.ready
    for directory in ready { passes.began(directory) }
    return ready
  }

  @Test func claimsFirstThenTheOthersInTurn() {
    var passes = Passes()
    #expect(passes == Passes() && passes.areSettled)
    passes.request()
    #expect(!passes.areSettled && !passes.areRunning)
    #expect(begin(&passes) == [.urgent, .cur, .partial, .new, .standing])
    #expect(passes.isUrgentRunning && passes.areOthersRunning)
    passes.ended(.urgent)
    #expect(!passes.isUrgentRunning)
    #expect((0..<10).map { _ in passes.next() } == Array(repeating: .cur, count: 10))
    passes.ended(.cur)
    passes.ended(.standing)
    let turns = (0..<10).compactMap { _ in passes.next() }
    #expect(turns.count { $0 == .new } == 5 && turns.count { $0 == .partial } == 5)
    passes.ended(.new)
    #expect((0..<2).map { _ in passes.next() } == [.partial, .partial])
    passes.ended(.partial)
    let none = passes.next()
    #expect(passes.areSettled && none == nil)
  }

  /// What comes after a pass began may have been missed: a pass that was requested meanwhile begins anew.
  @Test func aPassUnderWayEndsFirst() {
    var passes = Passes()
    passes.request()
    _ = begin(&passes)
    passes.ended(.urgent)
    passes.ended(.cur)
    passes.request()
    #expect(begin(&passes) == [.urgent, .cur], "or a long pass would never end")
    passes.ended(.urgent)
    for directory in [Directory.cur, .partial, .new, .standing] { passes.ended(directory) }
    #expect(!passes.areSettled)
    #expect(begin(&passes) == [.partial, .new, .standing])
    for directory in [Directory.partial, .new, .standing] { passes.ended(directory) }
    #expect(passes.areSettled)
  }

  /// `urgent/` is read by itself, also while the others are.
  @Test func urgentOnesAreReadByThemselves() {
    var passes = Passes()
    passes.request([.urgent])
    #expect(begin(&passes) == [.urgent])
    let none = passes.next()
    #expect(none == nil && passes.areRunning && !passes.areOthersRunning && !passes.areSettled)
    passes.ended(.urgent)
    #expect(passes.areSettled)
  }
}
