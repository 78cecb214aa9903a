/// Requests in a row that brought next to nothing: a server that gives a few bytes each time would be asked without end.
struct SmallSteps {
  /// Bytes that are no small step.
  let least: UInt64
  /// So many in a row are too many.
  let most: Int
  private(set) var count = 0

  init(least: UInt64, most: Int) {
    self.least = least
    self.most = most
  }

  mutating func note(_ bytes: UInt64) { count = bytes >= least ? 0 : count + 1 }
  mutating func reset() { count = 0 }
  var areTooMany: Bool { count >= most }
}
