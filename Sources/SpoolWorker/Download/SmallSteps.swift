/// Counts consecutive requests that brought next to nothing. Without a limit, a server that sends a few bytes each time
/// would be asked forever.
struct SmallSteps {
  /// This many consecutive stalls are too many, because each takes long.
  private static let mostStalls = 3

  /// A request with at least this many bytes is not a small step.
  let least: UInt64
  /// This many consecutive small steps are too many.
  let most: Int
  private(set) var count = 0
  private var stalls = 0

  init(least: UInt64, most: Int) {
    self.least = least
    self.most = most
  }

  /// - Parameter isStall: whether the request stalled.
  mutating func note(_ bytes: UInt64, isStall: Bool = false) {
    if bytes >= least { return reset() }
    count += 1
    stalls = isStall ? stalls + 1 : 0
  }

  mutating func reset() { (count, stalls) = (0, 0) }

  var areTooMany: Bool { count >= most || stalls >= Self.mostStalls }
}
