import TestSupport
import Testing

@testable import Spool

@Suite struct SharedSlotsTests {
  private let fixture: Fixture
  private var spool: Spool { fixture.spool }

  init() throws { fixture = try Fixture() }

  private func take(_ slots: SharedSlots, _ server: String, limit: Int, _ own: Set<Int> = []) throws -> Int? {
    try slots.take(of: server, limit: try slots.lowestLimit(below: limit), except: own)
  }

  @Test func slotsOfOneServer() throws {
    let (one, other) = (try SharedSlots(of: spool), try SharedSlots(of: spool))
    #expect(try take(one, "http://a:80", limit: 2) == 0)
    #expect(try take(other, "http://a:80", limit: 2) == 1)
    #expect(try take(one, "http://a:80", limit: 2, [0]) == nil)
    #expect(try take(one, "http://b:80", limit: 2) == 0)
    try other.give(1, of: "http://a:80")
    #expect(try take(one, "http://a:80", limit: 2, [0]) == 1)
  }

  @Test func whoEndsGivesAllBack() throws {
    var one: SharedSlots? = try SharedSlots(of: spool)
    let other = try SharedSlots(of: spool)
    #expect(try one?.take(of: "http://a:80", limit: 1, except: []) == 0)
    try one?.say(limit: 1)
    try one?.say(transfers: [1, 2, 3], rates: [100, nil, nil])
    #expect(try take(other, "http://a:80", limit: 1) == nil)
    #expect(try other.others().transfers == [1, 2, 3])
    one = nil
    #expect(try take(other, "http://a:80", limit: 1) == 0)
    #expect(try other.others() == SharedSlots.Others())
  }

  @Test func wantsOfOthers() throws {
    let workers = try (0..<3).map { _ in try SharedSlots(of: spool) }
    #expect(try workers[0].workers() == 3)
    try workers[1].want("http://a:80")
    #expect(try workers.map { try $0.isWanted("http://a:80") } == [true, false, true])
    #expect(try !workers[0].isWanted("http://b:80"))
    try workers[2].want("http://a:80")
    try workers[1].wantNothing()
    #expect(try workers.map { try $0.isWanted("http://a:80") } == [true, true, false])
  }

  @Test func `one of the workers probes a server`() throws {
    var one: SharedSlots? = try SharedSlots(of: spool)
    let other = try SharedSlots(of: spool)
    #expect(try one?.takeProbe(of: "http://a:80") == true && one?.takeProbe(of: "http://a:80") == true)
    #expect(try !other.takeProbe(of: "http://a:80") && other.takeProbe(of: "http://b:80"))
    try one?.giveProbe(of: "http://a:80")
    #expect(try other.takeProbe(of: "http://a:80") && one?.takeProbe(of: "http://a:80") == false)
    #expect(try one?.takeProbe(of: "http://c:80") == true)
    one = nil
    #expect(try other.takeProbe(of: "http://c:80"))
  }

  @Test func theLowestLimitCounts() throws {
    let workers = try [9, 3, 5].map { limit in
      let slots = try SharedSlots(of: spool)
      try slots.say(limit: limit)
      return slots
    }
    #expect(try workers.map { try $0.lowestLimit(below: 9) } == [3, 5, 3])
    try workers[1].say(limit: 8)
    #expect(try workers[0].lowestLimit(below: 9) == 5)
  }

  @Test func transfersAndRatesOfOthers() throws {
    let workers = try (0..<3).map { _ in try SharedSlots(of: spool) }
    try workers[0].say(transfers: [0, 4, 1], rates: [500, 500, 70])
    try workers[1].say(transfers: [1, 2, 0], rates: [nil, 300, 90])
    let others = try workers[2].others()
    #expect(others.transfers == [1, 6, 1] && others.rates == [500, 300, 70])
    try workers[0].say(transfers: [0, 1, 0], rates: [nil, nil, nil])
    let later = try workers[2].others()
    #expect(later.transfers == [1, 3, 0] && later.rates == [nil, 300, 90])
    #expect(try workers[1].others().transfers == [0, 1, 0])
  }

  @Test func turnsOfAServer() throws {
    let (one, other) = (try SharedSlots(of: spool), try SharedSlots(of: spool))
    let now: Int64 = 1_800_000_000_000
    #expect(try one.turn(at: "http://a:80", every: 500, now: now) == nil)
    #expect(try other.turn(at: "http://a:80", every: 500, now: now + 100) == 400)
    #expect(try other.untilTurn(at: "http://a:80", every: 500, now: now + 200) == 300)
    #expect(try other.turn(at: "http://b:80", every: 500, now: now + 100) == nil)
    #expect(try other.turn(at: "http://a:80", every: 500, now: now + 500) == nil)
    #expect(try one.turn(at: "http://a:80", every: 500, now: now + 501) == 499)
    // The pace was slower when that was written, or a clock was wrong.
    #expect(try one.turn(at: "http://a:80", every: 100, now: now + 502) == nil)
    #expect(try one.turn(at: "http://a:80", every: 500, now: now - 86_400_000) == nil)
  }

  @Test func aDirectoryThatCannotBeMade() throws {
    try fixture.write("servers", "")
    #expect(throws: SpoolError.self) { try SharedSlots(of: spool) }
  }
}
