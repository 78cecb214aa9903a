import Testing

@testable import Transfer

@Suite struct URLPartsTests {
  @Test(
    arguments: [
      ("http://h/a", "http", "h", 80, "http://h/a"),
      ("HTTPS://Example.ORG", "https", "example.org", 443, "https://example.org/"),
      ("http://u:p@h:8080/a?token=s#f", "http", "h", 8080, "http://h:8080/a"),
      ("https://h:443/", "https", "h", 443, "https://h/"), ("ftp://h/a", "ftp", "h", 21, "ftp://h/a"),
      ("sftp://u@h/~/a", "sftp", "h", 22, "sftp://h/~/a"),
      ("http://[::1]:81/a", "http", "[::1]", 81, "http://[::1]:81/a"),
      ("http://h/grüße", "http", "h", 80, "http://h/gr%c3%bc%c3%9fe"),
      ("http://h/\u{202e}\u{85}", "http", "h", 80, "http://h/%e2%80%ae%c2%85"),
      ("http://h/a/../b", "http", "h", 80, "http://h/b"),
      // An address by other spellings, the last of which libcurl sees through only when it reads its own text again.
      ("http://127.1/", "http", "127.0.0.1", 80, "http://127.0.0.1/"),
      ("http://u:p@%30:81/", "http", "0.0.0.0", 81, "http://0.0.0.0:81/"),
    ] as [(String, String, String, UInt16, String)])
  func parts(text: String, scheme: String, host: String, port: UInt16, redacted: String) throws {
    let url = try URLParts(text)
    #expect(url.scheme.rawValue == scheme)
    #expect(url.host == host)
    #expect(url.port == port)
    #expect(url.redacted == redacted)
    #expect("\(url)" == redacted && String(reflecting: url) == redacted)
  }

  @Test(arguments: [
    ("", "no scheme: a URL begins with http:// or https://"),
    ("h/a", "no scheme: a URL begins with http:// or https://"),
    ("http:/h/a", "no scheme: a URL begins with http:// or https://"), ("http:///h", "no host in the URL"),
    ("http://", "no host in the URL"), ("http://?a", "no host in the URL"), ("http://:80/", "no host in the URL"),
    ("http://u@/", "no host in the URL"),
    ("file:///etc/passwd", "the scheme is not one of http, https, ftp, ftps, sftp"),
    ("http://h/a b", "blank in the URL: write %20"), ("http://h/a\n", "control character in the URL"),
    ("http://h/\u{0}", "control character in the URL"), ("http://h/\u{7f}", "control character in the URL"),
    ("gopher://h/a", "the scheme is not one of http, https, ftp, ftps, sftp"),
    ("file://h/a", "the scheme is not one of http, https, ftp, ftps, sftp"),
    ("http://h:0/", "port is not between 1 and 65535"), ("http://h:65536/", "port is not between 1 and 65535"),
    ("http://h:99999999999999999999/", "port is not between 1 and 65535"),
    ("http://h:8x/", "port is not between 1 and 65535"), ("http://h:-1/", "port is not between 1 and 65535"),
    ("http://a,b/", "host name is not valid"), ("http://a\\b/", "host name is not valid"),
    ("http://%0a/", "host name is not valid"), ("http://[::zz]/", "IPv6 address is not valid"),
    ("ftp://h/", "the path does not name a file"), ("ftp://h/dir/", "the path does not name a file"),
    ("ftp://h/a;TYPE=A", "the path does not name a file"), ("http://u:caf%E9@h/", "user name or password is not UTF-8"),
  ])
  func problems(text: String, reason: String) {
    #expect(throws: URLProblem(reason: reason)) { try URLParts(text) }
  }

  @Test func problemsNameNoSecrets() {
    for text in ["http://user:hunter2@h:0/?q=hunter2", "http://user:hunter2%0a@h/", "http://hunter2 @h"] {
      #expect { try URLParts(text) } throws: { !"\($0)".contains("hunter2") }
    }
  }

  @Test(
    arguments: [
      ("a.tar", "a.tar"), ("x/a%20b", "a b"), ("gr%C3%BC%C3%9Fe", "grüße"), ("grüße", "grüße"), ("a%2", "a%2"),
      ("a%zz", "a%zz"), ("%2525", "%25"), ("..a", "..a"), ("a?b=/c", "a"), ("a+b", "a+b"), ("", nil), ("x/", nil),
      ("%2e", nil), ("%2E%2e", nil), ("a%2Fb", "b"), ("a%2F%CC%81b", "\u{301}b"), ("a%2F", nil),
      ("https%3A%2F%2Fcdn.example%2Fx.mp3", "x.mp3"), ("a%2F..", nil), ("a%00", nil), ("a%0a", nil), ("a%7f", nil),
      ("a%C2%85", nil), ("caf%e9.pdf", "caf%E9.pdf"), ("%ff%0a", nil),
    ] as [(String, String?)])
  func lastPathSegment(path: String, name: String?) throws {
    #expect(try URLParts("http://h/" + path).lastPathSegment == name)
  }

  @Test(
    arguments: [
      ("http://bücher.example:8/a?q", "http://xn--bcher-kva.example:8/a?q"),
      // The same host, as it may be typed: in capitals, as two characters for one, percent-encoded, in its own form.
      ("http://BÜCHER.example/", "http://xn--bcher-kva.example/"),
      ("http://bu\u{308}cher.example/", "http://xn--bcher-kva.example/"),
      ("http://b%C3%BCcher.example/", "http://xn--bcher-kva.example/"),
      ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
      ("https://u:p@例え.テスト/a#f", "https://xn--r8jz45g.xn--zckzah/a"),
    ])
  func `a host beyond ASCII has one form`(text: String, request: String) throws {
    let url = try URLParts(text)
    #expect(url.requestText == request && request.contains(url.host) && url.user == (text.contains("u:p") ? "u" : nil))
    #expect(try URLParts("http://h/").resolving(text).host == url.host, "as the target of a redirect")
  }

  @Test(arguments: [
    "http://h\u{FF0F}.example/", "http://a\u{200B}\u{FFFD}b/", "http://\(String(repeating: "ü", count: 70))/",
  ])
  func `a host that has no such form is refused`(text: String) {
    #expect(throws: URLProblem.self) { try URLParts(text) }
  }

  @Test(arguments: [
    ("http://h/a", "http://h/b?c", true), ("http://h:80/a", "http://H/b", true), ("http://u:p@h/", "http://h/", true),
    ("http://h/", "https://h/", false), ("http://h/", "http://h:81/", false), ("http://h/", "http://h./", false),
    ("http://h/", "http://h.x/", false), ("https://h:80/", "http://h:80/", false),
  ])
  func origins(one: String, other: String, same: Bool) throws {
    #expect(try URLParts(one).hasSameOrigin(as: try URLParts(other)) == same)
  }

  @Test(arguments: [
    ("/b", "http://h/b"), ("b", "http://h/x/b"), ("../../b", "http://h/b"), ("//g/b", "http://g/b"),
    ("https://g:8/b c", "https://g:8/b%20c"), ("?q=1#f", "http://h/x/a?q=1"), ("http://eve:pw@h/b", "http://h/b"),
  ])
  func redirects(location: String, target: String) throws {
    let url = try URLParts("http://u:p@h/x/a?secret").resolving(location)
    #expect(url.requestText == target)
  }

  @Test(arguments: [
    "file:///etc/passwd", "gopher://h/", "http://h:0/", "javascript:x", "http://h/\n", "http://h/\u{0}",
  ])
  func redirectsToNowhere(location: String) throws {
    let url = try URLParts("http://h/a")
    #expect(throws: URLProblem.self) { try url.resolving(location) }
  }
}
