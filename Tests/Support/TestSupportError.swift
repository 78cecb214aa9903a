/// What went wrong in the test equipment itself, as opposed to the program under test.
package struct TestSupportError: Error, CustomStringConvertible {
  package let description: String

  package init(_ description: String) {
    self.description = description
  }

  /// A failed system call: its name, what it was about, and `errno` as text.
  package init(_ call: String, _ subject: String, errno code: Int32) {
    self.init("\(call) \(subject): \(errorText(code))")
  }
}
