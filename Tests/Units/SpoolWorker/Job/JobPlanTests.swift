import Testing

@testable import Spool
@testable import SpoolWorker
@testable import Transfer

/// URLs and outputs, checked before anything is asked of anybody.
@Suite struct JobPlanTests {
  private func plan(_ text: String, protocols: Set<Scheme> = [.http, .https]) -> Result<JobPlan, Failure> {
    let request = parsed(text).request
    return Result { () throws(Failure) in try JobPlan(request, protocols: protocols) }
  }

  private func refusal(_ text: String, protocols: Set<Scheme> = [.http, .https]) throws -> Failure {
    let result = plan(text, protocols: protocols)
    guard case .failure(let failure) = result else { throw Unexpected("accepted: \(result)") }
    return failure
  }

  @Test(arguments: [
    ("https://h/a.bin\n", "a.bin"), ("https://h/x/y/a%20b\n", "a b"), ("https://h/a?x=1#f\n", "a"),
    ("https://h/%C3%BC\n", "ü"), ("https://h/..%2fetc\n", "etc"), ("https://h/a%ffb\n", "a%FFb"),
    ("url: https://h/a\noutput: sets/b\n", "sets/b"), ("url: https://h/\noutput: b\n", "b"), ("https://h/...\n", "..."),
    ("url: https://m/first\nurl: https://h/second\n", "first"),
  ])
  func outputs(text: String, output: String) throws {
    #expect(try plan(text).get().output.text == output)
  }

  @Test(arguments: [
    ("https://h/\n", "bad-output"), ("https://h\n", "bad-output"), ("https://h/a%2f..\n", "bad-output"),
    ("https://h/a/%2e%2e\n", "bad-output"), ("https://h/a%00b\n", "bad-output"), ("https://h/a%0ab\n", "bad-output"),
    ("https://h/x/..\n", "bad-output"), ("https://h/" + String(repeating: "n", count: 256) + "\n", "bad-output"),
    ("https://h:0/a\n", "malformed"), ("https://h:65536/a\n", "malformed"), ("https://h:x/a\n", "malformed"),
    ("https:///a\n", "malformed"), ("url: h/a\n", "malformed"), ("url: file:///etc/passwd\n", "malformed"),
    ("url: gopher://h/a\n", "malformed"), ("url: https://h/a b\n", "malformed"),
    ("url: javascript:alert(1)\n", "malformed"), ("ftp://h/a\n", "protocol"), ("sftp://h/a\n", "protocol"),
  ])
  func refusals(text: String, code: String) throws {
    let failure = try refusal(text)
    #expect(failure.label == code && failure.failureClass == .permanent && failure.line == 1)
  }

  @Test func everyMirrorIsChecked() throws {
    #expect(try refusal("# mirrors\nurl: https://h/a\nurl: https://h:99999/a\n").line == 3)
  }

  @Test func otherSchemesWhereEnabled() throws {
    #expect(try plan("ftp://h/a\n", protocols: [.ftp]).get().mirrors.count == 1)
    #expect(try refusal("https://h/a\n", protocols: [.ftp]).label == "protocol")
  }

  @Test(arguments: [
    "https://user:s3cret@h:0/a", "https://h:0/a?token=s3cret", "gopher://user:s3cret@h/", "https://user:s3cret@/x",
  ])
  func reasonsHoldNoSecrets(url: String) throws { #expect(try !refusal("url: \(url)\n").reason.contains("s3cret")) }
}
