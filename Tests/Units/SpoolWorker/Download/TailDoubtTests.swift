import Testing

@testable import SpoolWorker

/// Which bytes of an answer that broke off are asked for again, and where the data is cut.
@Suite struct TailDoubtTests {
  private let least = TailDoubt.least

  /// Compares with an answer whose bytes are right from its start, for data whose bytes from `junk` on are wrong.
  /// - Returns: where each request began, and where the data was cut; nil if all of it is believed.
  private func search(from floor: UInt64, to end: UInt64, junk: UInt64) -> (asked: [UInt64], cut: UInt64?) {
    guard var doubt = TailDoubt(from: floor, to: end) else { return ([], nil) }
    var asked = [doubt.position]
    while !doubt.isSettled {
      if doubt.position < junk { doubt.agree(Int(min(junk, end) - doubt.position)) }
      if doubt.isSettled { break }
      if let cut = doubt.differ() { return (asked, cut) }
      asked.append(doubt.position)
    }
    return (asked, nil)
  }

  @Test func nothingIsInDoubtWithoutBytesOfTheAnswer() {
    #expect(TailDoubt(from: 500, to: 500) == nil && TailDoubt(from: 501, to: 500) == nil)
  }

  @Test func theLast64KiBAreAskedForAgain() {
    let (asked, cut) = search(from: 0, to: 10_000_000, junk: .max)
    #expect(asked == [10_000_000 - least] && cut == nil)
  }

  /// Otherwise a server that cuts each answer after a few bytes would bring nothing else.
  @Test func noMoreThanHalfOfTheAnswerIsAskedForAgain() {
    #expect(search(from: 9_990_000, to: 10_000_000, junk: .max).asked == [9_995_000])
    #expect(search(from: 4, to: 5, junk: .max).asked == [4])
  }

  @Test func bytesBeforeTheAnswerAreNotAskedForAgain() {
    #expect(search(from: 9_990_000, to: 10_000_000, junk: 9_990_001).asked == [9_995_000, 9_990_000])
  }

  @Test(arguments: [1, 50, 40_000, 65_536, 65_537, 300_000, 1 << 20, 5_000_000] as [UInt64])
  func theDataIsCutWhereTheJunkBegins(length: UInt64) {
    let end: UInt64 = 10_000_000
    let (asked, cut) = search(from: 0, to: end, junk: end - length)
    #expect(cut == end - length)
    #expect(zip(asked, asked.dropFirst()).allSatisfy { $0 > $1 } && asked.count <= 9, "\(asked)")
    #expect(end - asked.last! <= 2 * length + 2 * least, "no further back than it has to")
  }

  @Test func anAnswerThatIsAllJunkIsCutAtItsStart() {
    #expect(search(from: 9_990_000, to: 10_000_000, junk: 9_990_000).cut == 9_990_000)
    #expect(search(from: 0, to: 30_000, junk: 20).cut == 20)
  }

  /// Junk agrees with other junk by chance.
  @Test func fewBytesThatAgreeProveNothing() throws {
    var doubt = try #require(TailDoubt(from: 0, to: 10_000_000))
    doubt.agree(Int(least) - 1)
    #expect(doubt.differ() == nil && doubt.position == 10_000_000 - 2 * least)
    doubt.agree(Int(least))
    #expect(doubt.differ() == 10_000_000 - least)
  }

  /// Bytes that two answers agree on need not come a third time, or a server that cuts each answer would never be done.
  @Test func aComparisonGoesOnWhereItBrokeOff() throws {
    var doubt = try #require(TailDoubt(from: 0, to: 10_000_000))
    doubt.agree(10_000)
    #expect(doubt.position == 10_000_000 - least + 10_000 && !doubt.isSettled)
    doubt.agree(Int(least) - 10_000)
    #expect(doubt.isSettled)
  }

  /// Two answers that end alike may have the same junk.
  @Test func theNextRequestBeginsElsewhereAfterAnAnswerThatEndsAlike() throws {
    var doubt = try #require(TailDoubt(from: 0, to: 1050))
    doubt.agree(525)
    doubt.endAlike()
    #expect(doubt.position == 788 && !doubt.isSettled)
    for _ in 0..<12 {
      doubt.agree(Int(1050 - doubt.position))
      doubt.endAlike()
    }
    #expect(doubt.isSettled, "in the end it is believed")
  }

  /// Each answer has 1,000 right bytes and the same 50 wrong ones.
  @Test func aServerThatBreaksOffAllAnswersAlikeIsSeenThrough() throws {
    var doubt = try #require(TailDoubt(from: 0, to: 1050))
    doubt.agree(475)
    #expect(doubt.differ() == nil && doubt.position == 0)
    doubt.agree(1050)
    doubt.endAlike()
    #expect(doubt.position == 525)
    doubt.agree(475)
    #expect(doubt.differ() == 1000)
  }
}
