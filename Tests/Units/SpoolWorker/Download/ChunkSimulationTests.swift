import TestSupport
import Testing

@testable import SpoolWorker

/// Connections of any rate that stall, break off, go away and bring pieces of any size: whatever they do, each byte is
/// delivered once and in order, no more is kept than the window allows, and it comes to an end.
@Suite struct ChunkSimulationTests {
  @Test(arguments: 1...300 as ClosedRange<UInt64>)
  func anyOrderOfEvents(seed: UInt64) throws {
    var simulation = Simulation(seed: seed)
    try simulation.run()
  }

  private struct Simulation {
    private var random: SeededGenerator
    private var plan: ChunkPlan
    private let content: Range<UInt64>
    /// Bytes a millisecond; 0: stalls until it is cancelled or breaks off.
    private var rates: [UInt64]
    /// What is left of each connection's request: where its next byte belongs, and the end.
    private var requests: [Range<UInt64>?]
    /// Offsets by chunk, as a stand-in for the bytes.
    private var kept: [UInt64: [Range<UInt64>]] = [:]
    private var length: UInt64
    private var now: Int64 = 0

    init(seed: UInt64) {
      random = SeededGenerator(seed: seed)
      let connections = Int.random(in: 1...32, using: &random)
      let start = UInt64.random(in: 0...5000, using: &random)
      content = start..<start + UInt64.random(in: 1...400_000, using: &random)
      let largest = UInt64.random(in: 1...40_000, using: &random)
      // The smallest requests of the largest content would take the time of a test that nobody needs.
      plan = ChunkPlan(
        content, connections: connections, largest: max(largest, UInt64(content.count) / 200),
        ChunkPlan.Estimate(flow: .random(in: 0...1e6, using: &random), wait: .random(in: 0...300, using: &random)))
      rates = Array(repeating: 0, count: connections)
      for index in rates.indices { rates[index] = [0, 1, 50, 1000, 5000].randomElement(using: &random) ?? 1 }
      requests = Array(repeating: nil, count: connections)
      length = start
    }

    mutating func run() throws {
      var steps = 0
      while !plan.isFinished {
        steps += 1
        try #require(steps < 2_000_000, "no end in sight at \(length) of \(content)")
        assign()
        let busy = requests.indices.filter { requests[$0] != nil }
        let chosen = busy.randomElement(using: &random)
        let connection = try #require(chosen, "nothing is under way, and it is not finished")
        now += Int64.random(in: 0...3, using: &random)
        try move(connection)
        #expect(plan.early <= plan.window)
        let keeps = kept.values.reduce(0) { $0 + $1.reduce(0) { $0 + UInt64($1.count) } }
        try #require(keeps <= plan.window)
      }
      #expect(length == content.upperBound && kept.isEmpty)
      let more = plan.assign(now: now)
      #expect(more == [])
    }

    private mutating func assign() {
      for request in plan.assign(now: now) {
        #expect(requests[request.connection] == nil && content.contains(request.range.lowerBound))
        #expect(request.range.upperBound <= content.upperBound && UInt64(request.range.count) <= 2 * plan.largest)
        requests[request.connection] = request.range
      }
    }

    /// Some bytes, the end of them, or no connection any more.
    private mutating func move(_ connection: Int) throws {
      guard let request = requests[connection] else { return }
      let dice = Int.random(in: 0..<1000, using: &random)
      if request.isEmpty || dice < 8 {
        plan.ended(connection, now: now)
        requests[connection] = nil
        if dice < 2, plan.live > 1 { plan.retire(connection) }
        // One that stalled is not always the same one.
        if dice < 8 { rates[connection] = [0, 1, 50, 1000, 5000].randomElement(using: &random) ?? 1 }
        return
      }
      let count = min(UInt64(request.count), rates[connection] * UInt64.random(in: 1...16, using: &random))
      guard count > 0 else { return }
      requests[connection] = request.lowerBound + count..<request.upperBound
      let answer = plan.receive(Int(count), on: connection, now: now)
      let delivery = try #require(answer)
      try deliver(request.lowerBound..<request.lowerBound + count, delivery)
      guard delivery.completes else { return }
      for other in plan.superfluous {
        #expect(other != connection)
        plan.ended(other, now: now)
        requests[other] = nil
      }
    }

    private mutating func deliver(_ bytes: Range<UInt64>, _ delivery: ChunkPlan.Delivery) throws {
      let fresh = bytes.lowerBound + UInt64(delivery.skipped)..<bytes.upperBound
      switch delivery.place {
      case .nowhere: try #require(fresh.isEmpty)
      case .early(let chunk): kept[chunk.lowerBound, default: []].append(fresh)
      case .atEnd:
        try append(fresh)
        while delivery.completes, plan.advance() {
          guard let head = plan.head, let early = kept.removeValue(forKey: head) else { continue }
          for piece in early { try append(piece) }
        }
      }
    }

    private mutating func append(_ bytes: Range<UInt64>) throws {
      try #require(bytes.lowerBound == length, "once and in order")
      length = bytes.upperBound
    }
  }
}
