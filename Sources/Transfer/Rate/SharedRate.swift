/// A rate limit that fetches of some classes share.
package struct SharedRate: Sendable, Equatable {
  /// The classes of fetches that share it (``TransferEngine/limit(group:to:of:)``); nil for all. A fetch that nobody
  /// put into a class has class 0.
  package let classes: Set<Int>?
  /// Of all of them together, on average.
  package let bytesPerSecond: UInt64

  /// - Parameter classes: nil for all.
  package init(of classes: Set<Int>? = nil, bytesPerSecond: UInt64) {
    self.classes = classes
    self.bytesPerSecond = bytesPerSecond
  }

  func covers(_ rateClass: Int) -> Bool { classes?.contains(rateClass) ?? true }
}
