import Testing

@testable import SpoolWorker

/// Which connection asks for what, and where its bytes belong.
@Suite struct ChunkPlanTests {
  /// The plan under test; `#expect` takes no mutating calls, which these methods are not.
  private final class Plan {
    private var plan: ChunkPlan

    init(
      _ range: Range<UInt64> = 0..<100_000, connections: Int = 3, largest: UInt64 = 1000, rate: Double = 1e6,
      wait: Int64 = 0
    ) {
      let first = ChunkPlan.Estimate(flow: rate, wait: wait)
      plan = ChunkPlan(range, connections: connections, largest: largest, first)
    }

    var early: UInt64 { plan.early }
    var window: UInt64 { plan.window }
    var live: Int { plan.live }
    var head: UInt64? { plan.head }
    var isFinished: Bool { plan.isFinished }
    var superfluous: [Int] { plan.superfluous }
    @discardableResult func assign(_ now: Int64 = 0) -> [ChunkPlan.Request] { plan.assign(now: now) }
    func receive(_ count: Int, on connection: Int) -> ChunkPlan.Delivery? {
      plan.receive(count, on: connection, now: 0)
    }
    @discardableResult func end(_ connection: Int, _ now: Int64, isBroken: Bool = false) -> UInt64 {
      plan.ended(connection, now: now, isBroken: isBroken)
    }
    func advance() -> Bool { plan.advance() }
    func retire(_ connection: Int) { plan.retire(connection) }

    /// All that a connection asked for comes until `now`, from `first` on, in milliseconds.
    func bring(_ count: Int, on connection: Int, from first: Int64 = 0, _ now: Int64) {
      #expect(plan.receive(count, on: connection, now: first) != nil)
      plan.ended(connection, now: now)
      while plan.advance() {}
    }
  }

  private typealias Delivery = ChunkPlan.Delivery
  private typealias Request = ChunkPlan.Request

  @Test func chunksFollowEachOther() {
    let plan = Plan(500..<100_000)
    let requests = plan.assign()
    #expect(requests.map(\.connection) == [0, 1, 2])
    #expect(requests.map(\.range) == [500..<1500, 1500..<2500, 2500..<3500])
    #expect(plan.assign() == [], "all are busy")
  }

  @Test func onlyTheHeadGoesToTheEnd() {
    let plan = Plan()
    plan.assign()
    #expect(
      plan.receive(600, on: 1) == Delivery(place: .early(1000..<2000), offset: 1000, skipped: 0, completes: false))
    #expect(plan.receive(1000, on: 0) == Delivery(place: .atEnd, offset: 0, skipped: 0, completes: true))
    #expect(plan.advance())
    #expect(!plan.advance() && plan.head == 1000)
    #expect(plan.receive(400, on: 1) == Delivery(place: .atEnd, offset: 1600, skipped: 0, completes: true))
  }

  @Test func moreThanAskedForIsRefused() {
    let plan = Plan()
    plan.assign()
    #expect(plan.receive(1001, on: 0) == nil)
    #expect(plan.receive(999, on: 0) != nil)
    #expect(plan.receive(2, on: 0) == nil)
    plan.end(0, 1)
    #expect(plan.receive(1, on: 0) == nil, "it has asked for nothing")
  }

  /// Two chunks for each connection may be under way or kept behind the head, and no byte more.
  @Test func theWindowIsABound() {
    let plan = Plan(connections: 2)
    #expect(plan.window == 4000)
    plan.assign()
    // The second connection gets on, the first, which has the head, does not.
    for time in 1...3 as ClosedRange<Int64> {
      plan.bring(1000, on: 1, time)
      #expect(plan.assign(time).map(\.connection) == [1])
    }
    #expect(plan.early == plan.window)
    plan.bring(1000, on: 1, 4)
    #expect(plan.assign(199) == [], "too soon to call it slow")
    #expect(plan.assign(200) == [Request(connection: 1, range: 0..<1000, chunk: 0)], "nothing new: the head once more")
  }

  @Test func whatBrokeOffIsAskedForFirst() {
    let plan = Plan()
    plan.assign()
    #expect(plan.receive(300, on: 1) != nil)
    #expect(plan.end(1, 10) == 300)
    plan.retire(1)
    plan.bring(1000, on: 2, 10)
    #expect(plan.assign(10) == [Request(connection: 2, range: 1300..<2000, chunk: 1000)])
    #expect(plan.live == 2)
  }

  /// Its last bytes come once more, to be compared, and no earlier ones than those of the broken response.
  @Test func aBrokenResponseIsAskedForAgainFromItsEnd() {
    let plan = Plan(0..<10_000_000, connections: 2, largest: 1_000_000, rate: 1e9)
    plan.assign()
    #expect(plan.receive(200_000, on: 0) != nil)
    plan.end(0, 10, isBroken: true)
    let request = plan.assign(10).first
    #expect(request?.range.lowerBound == 200_000 - TailDoubt.least && request?.chunk == 0)
    // This one breaks off where the other one did, which shows nothing.
    #expect(plan.receive(Int(TailDoubt.least), on: 0)?.place == .nowhere)
    #expect(plan.end(0, 20, isBroken: true) == 0)
    let next = 200_000 - TailDoubt.least / 2
    #expect(plan.assign(20).first?.range.lowerBound == next)
    #expect(plan.receive(Int(TailDoubt.least / 2) + 100, on: 0)?.skipped == Int(TailDoubt.least / 2))
    plan.end(0, 30, isBroken: true)
    #expect(plan.assign(30).first?.range.lowerBound == TailDoubt.begin(from: next, to: 200_100))
  }

  /// Requests take about a second each.
  @Test func chunksFollowTheRate() {
    let plan = Plan(0..<1 << 30, connections: 2, largest: 4 << 20, rate: 300_000)
    #expect(plan.assign().map(\.range.count) == [150_000, 300_000])
    plan.bring(300_000, on: 1, 100)
    #expect(plan.assign(100).map(\.range.count) == [3_000_000])
    plan.bring(150_000, on: 0, 100_000)
    #expect(plan.assign(100_000).map(\.range.count) == [Int(ChunkPlan.smallest)], "never less than that")
    plan.bring(3_000_000, on: 1, 101)
    #expect(plan.assign(101).map(\.range.count) == [4 << 20], "never more than that")
  }

  /// Otherwise all would end together, and what is early would be all but one chunk.
  @Test func theFirstRequestsEndOneAfterTheOther() {
    let plan = Plan(0..<1 << 30, connections: 4, largest: 4 << 20, rate: 3_000_000)
    #expect(plan.assign().map(\.range.count) == [750_000, 1_500_000, 2_250_000, 3_000_000])
    for connection in 0..<4 { plan.bring(750_000 * (connection + 1), on: connection, 250 * Int64(connection + 1)) }
    #expect(plan.assign(1000).map(\.range.count) == Array(repeating: 3_000_000, count: 4))
  }

  /// What fits into the window can all be early, and needs no second request.
  @Test func aSmallRestIsSharedAtOnce() {
    let plan = Plan(0..<60 << 20, connections: 8, largest: 4 << 20, rate: 5_000_000, wait: 200)
    #expect(plan.assign().map(\.range.count) == Array(repeating: (60 << 20) / 8, count: 8))
  }

  /// A connection that waits for a response brings nothing, so few long chunks are better where the way is long.
  @Test(arguments: [(0, 1_000_000), (20, 1_000_000), (50, 1_600_000), (100, 3_200_000), (500, 8 << 20)])
  func chunksGrowWithTheWait(wait: Int64, length: Int) {
    let plan = Plan(0..<1 << 30, connections: 1, largest: 4 << 20, rate: 1_000_000, wait: wait)
    #expect(plan.assign().map(\.range.count) == [length])
    plan.bring(length, on: 0, from: wait, Int64(length) / 1000 + wait)
    #expect(plan.assign(1000 + wait).map(\.range.count) == [length])
  }

  /// Where even twice the usual size is too short.
  @Test(arguments: [(5e6, 10, 4), (5e6, 100, 4), (5e6, 150, 5.7), (5e6, 300, 8), (1e9, 20, 4), (1e9, 21, 8)])
  func longAndFastWaysHaveLargerRequests(flow: Double, wait: Int64, mebibytes: Double) {
    let largest = ChunkPlan.Estimate(flow: flow, wait: wait).largest(4 << 20)
    #expect(abs(Double(largest) / 1_048_576 - mebibytes) < 0.2)
  }

  /// So that all end at about the same time.
  @Test func theEndIsShared() {
    let plan = Plan(0..<1 << 20, connections: 4, largest: 64 << 20, rate: 1e9)
    #expect(plan.assign().map(\.range.count) == Array(repeating: 262_144, count: 4))
  }

  /// The others are still busy with much, so the one that is idle takes all of what is left.
  @Test func whatTheOthersStillHaveCounts() {
    let plan = Plan(0..<4 << 20, connections: 2, largest: 2 << 20, rate: 1_048_576)
    #expect(plan.assign().map(\.range.count) == [1 << 20, 1 << 20])
    plan.bring(1 << 20, on: 0, 1000)
    // As fast as the other, which has a MiB left: together they have three.
    #expect(plan.assign(1000).map(\.range.count) == [1 << 20])
    plan.bring(1 << 20, on: 0, from: 1000, 2000)
    #expect(plan.assign(2000).map(\.range.count) == [1 << 20])
  }

  /// The head at a tenth of the other's rate: asked for again when the other would have been done with it.
  @Test func aSlowHeadIsAskedForAgain() {
    let plan = Plan(0..<2000, connections: 2)
    plan.assign()
    plan.bring(1000, on: 1, 1000)
    #expect(plan.receive(100, on: 0) != nil)
    #expect(plan.assign(999) == [], "it may be just behind")
    #expect(plan.assign(1001) == [Request(connection: 1, range: 50..<1000, chunk: 0)])
    // The slow one goes on meanwhile: each byte counts once, whoever brings it.
    #expect(plan.receive(50, on: 0) == Delivery(place: .atEnd, offset: 100, skipped: 0, completes: false))
    #expect(plan.receive(130, on: 1) == Delivery(place: .atEnd, offset: 150, skipped: 100, completes: false))
    #expect(plan.receive(10, on: 0) == Delivery(place: .nowhere, offset: 160, skipped: 10, completes: false))
    #expect(plan.superfluous == [])
    #expect(plan.receive(820, on: 1)?.completes == true)
    #expect(plan.superfluous == [0])
    #expect(plan.advance())
    #expect(plan.advance())
    #expect(plan.isFinished)
  }

  @Test func aHeadThatIsNotSlowIsNot() {
    let plan = Plan(0..<2000, connections: 2)
    plan.assign()
    plan.bring(1000, on: 1, 1000)
    #expect(plan.receive(600, on: 0) != nil)
    #expect(plan.assign(1100) == [], "more than half as fast")
    #expect(plan.assign(2000) == [Request(connection: 1, range: 300..<1000, chunk: 0)], "it has stopped")
  }
}
