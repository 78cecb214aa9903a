/// Requests in a row that brought next to nothing: a server that gives a few bytes each time would be asked without end.
struct SmallSteps {
  /// Stalls in a row that are too many: each of them takes its time.
  private static let mostStalls = 3

  /// Bytes that are no small step.
  let least: UInt64
  /// So many in a row are too many.
  let most: Int
  private(set) var count = 0
  private var stalls = 0

  init(least: UInt64, most: Int) {
    self.least = least
    self.most = most
  }

  /// - Parameter isStall: whether the server had all the time that it may have.
  mutating func note(_ bytes: UInt64, isStall: Bool = false) {
    if bytes >= least { return reset() }
    count += 1
    stalls = isStall ? stalls + 1 : 0
  }

  mutating func reset() { (count, stalls) = (0, 0) }

  var areTooMany: Bool { count >= most || stalls >= Self.mostStalls }
}
