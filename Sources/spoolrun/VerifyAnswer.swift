/// What `verify` says of one receipt.
struct VerifyAnswer: Sendable {
  var isGood = true
  /// For standard output; nil for nothing.
  var line: String?
  /// For standard error; nil for nothing.
  var problem: String?

  var hasText: Bool { line != nil || problem != nil }
}
