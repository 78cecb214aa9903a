/// What went wrong in the test equipment itself, as opposed to the program under test.
package struct TestSupportError: Error, CustomStringConvertible {
  package let description: String
  /// The `errno` of a system call that failed.
  package let code: Int32?

  package init(_ description: String) { self.init(description, code: nil) }

  private init(_ description: String, code: Int32?) { (self.description, self.code) = (description, code) }

  /// A failed system call: its name, what it was about, and `errno` as text.
  package init(_ call: String, _ subject: String, errno code: Int32) {
    self.init("\(call) \(subject): \(errorText(code))", code: code)
  }
}
