/// What `verify` says of one receipt.
struct VerifyAnswer: Sendable {
  var isGood = true
  /// For standard output; nil for nothing.
  var line: String?
  /// For standard error; nil for nothing.
  var problem: String?

  init(isGood: Bool = true, line: String? = nil, problem: String? = nil) {
    (self.isGood, self.line, self.problem) = (isGood, line, problem)
  }

  /// What is no receipt.
  init(unreadable listed: ListedReceipt) {
    isGood = false
    if case .unreadable(let reason) = listed { problem = reason }
  }

  var hasText: Bool { line != nil || problem != nil }
}
