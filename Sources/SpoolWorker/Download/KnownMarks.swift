internal import Spool

/// The marks that an attempt knows: those from which a checksum can continue when the data is cut, and the last durable
/// one.
struct KnownMarks {
  /// The start of the attempt, and the last two checkpoints, which are ``Journal/farBack`` apart.
  private var marks: [Mark]
  /// The last durable mark. Without one, cutting the data needs no durable journal line.
  private(set) var durable: Mark?
  private var lastBegun = LoopExecutor.milliseconds()

  /// - Parameter earlier: see ``Journal/Data/earlierMark``.
  init(start: Mark, earlier: Mark? = nil, durable: Mark?) {
    marks = [start] + [earlier, durable].compactMap { $0 }
    self.durable = durable
  }

  /// The growing data is replaced by other data.
  mutating func forget() { marks = [] }

  mutating func cut(to mark: Mark) { marks.removeAll { $0.offset > mark.offset } }

  /// The last mark at or before `offset`.
  func last(before offset: UInt64) -> Mark? {
    marks.filter { $0.offset <= offset }.max { $0.offset < $1.offset }
  }

  mutating func forgetDurable() { durable = nil }

  mutating func cutDurable(to mark: Mark) { durable = mark }

  /// - Parameter isOfGrowing: whether it is a mark of the growing data.
  mutating func add(durable mark: Mark, isOfGrowing: Bool) {
    durable = mark
    guard isOfGrowing else { return }
    if marks.count == 3, mark.offset < marks[2].offset + Journal.farBack { marks.removeLast() }
    marks = marks.prefix(1) + marks.dropFirst().suffix(1) + [mark]
  }

  mutating func noteCheckpointBegun() { lastBegun = LoopExecutor.milliseconds() }

  /// - Parameter length: of the data, in bytes.
  func isCheckpointDue(at length: UInt64, _ options: WorkerOptions) -> Bool {
    let fresh = length - (durable.map { min($0.offset, length) } ?? 0)
    if fresh == 0 { return false }
    return fresh >= options.checkpointBytes
      || LoopExecutor.milliseconds() - lastBegun >= options.checkpointMilliseconds
  }
}
