import Testing

@testable import Spool

/// The keys that `defaults` alone may have.
@Suite struct NetworkKeysTests {
  private static let lines = [
    "netrc: yes", "cookies: /home/a/cookies.txt", "proxy: socks5h://user:s3cret@proxy.example:1080", "ip: 6",
    "cert: a.pem", "key: a.key", "cacert: ca.pem", "allow-private: no",
  ]

  @Test func eachIsReadAndWritten() {
    let text = Self.lines.map { $0 + "\n" }.joined()
    let read = defaults(text)
    #expect(read.defect == nil)
    #expect(read.request.text == text)
    #expect(read.request.network.cookies == NetworkKeys.File("/home/a/cookies.txt", line: 2))
    #expect(Set(Self.lines.map { $0.prefix { $0 != ":" } }) == Set(JobKey.network.map { $0.name[...] }))
  }

  /// A stranger's job must not spend what is the worker's, nor get it by inheritance.
  @Test(arguments: lines) func noneIsAJobs(line: String) {
    let job = parsed("https://h/a\n\(line)\n")
    #expect(job.defect?.line == 2 && job.defect?.reason.contains("`defaults` only") == true)
    #expect(job.defect?.reason.contains("s3cret") == false)
    #expect(job.request.network == NetworkKeys())
    #expect(parsed("https://h/a\n").request.inheriting(defaults("\(line)\n").request).network == NetworkKeys())
  }

  @Test(
    arguments: [
      ("http://p:1", true), ("HTTPS://p.example:65535/", true), ("socks5://[::1]:9", true),
      ("socks5h://us%40er:s3%2Fcret@p:1", true), ("http://p", false), ("p:3128", false), ("http://p:0", false),
      ("http://p:65536", false), ("http://:1", false), ("http://p:1/x", false), ("http://p:1?s3cret", false),
      ("http://a@s3cret@p:1", false), ("http://::1:9", false), ("socks4://p:1", false), ("ftp://p:1", false),
      ("http://[]:1", false), ("http://s3 cret@p:1", false),
    ])
  func proxy(text: String, isValid: Bool) {
    let read = defaults("proxy: \(text)\n")
    #expect(read.request.network.proxy == (isValid ? text : nil))
    #expect((read.defect == nil) == isValid && read.defect?.reason.contains("s3cret") != true)
  }

  @Test(arguments: ["ip: 5", "ip: ipv4", "netrc:", "proxy:", "netrc: a\nnetrc: b"])
  func isRefused(line: String) { #expect(defaults("\(line)\n").defect != nil) }
}
