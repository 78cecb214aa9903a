import CCurl
import Glibc
import TestSupport
import Testing

@testable import Transfer

/// Which proxy a URL goes through, as curl(1) has it.
@Suite struct ProxyRulesTests {
  private func name(_ url: String, _ environment: [String: String]) throws -> String? {
    ProxyRules { environment[$0] }.proxy(for: try URLParts(url))?.name
  }

  @Test(
    arguments: [
      (["http_proxy": "http://p:3128"], "p:3128", nil), (["HTTP_PROXY": "http://p:3128"], nil, nil),
      (["https_proxy": "p:1"], nil, "p:1"), (["HTTPS_PROXY": "p:1"], nil, "p:1"),
      (["all_proxy": "socks5h://p"], "p:1080", "p:1080"), (["ALL_PROXY": "https://p"], "p:443", "p:443"),
      (["http_proxy": "a:1", "https_proxy": "", "all_proxy": "b:2"], "a:1", "b:2"), ([:], nil, nil),
    ] as [([String: String], String?, String?)])
  func `each scheme has its variables`(environment: [String: String], http: String?, https: String?) throws {
    #expect(try name("http://h/", environment) == http)
    #expect(try name("https://h/", environment) == https)
  }

  @Test(
    arguments: [
      ("*", "http://h/", true), ("h", "http://h/", true), ("h", "http://H:81/", true), ("h", "http://a.h/", true),
      ("h", "http://ah/", false), (".h", "http://h/", true), (".h", "http://a.h/", true), ("a.h", "http://h/", false),
      ("x, h ,y", "http://h/", true), ("x h", "http://h/", true), ("h.", "http://h/", true), (",", "http://h/", false),
      ("", "http://h/", false), ("127.0.0.1", "http://127.0.0.1:8/", true), ("127.0.0.1", "http://127.0.0.2/", false),
      ("127.0.0.0/8", "http://127.9.9.9/", true), ("10.1.2.0/23", "http://10.1.3.4/", true),
      ("10.1.2.0/23", "http://10.1.4.4/", false), ("0.0.0.0/0", "http://10.1.4.4/", true),
      ("10.0.0.0/33", "http://10.0.0.0/", false), ("0.0.1", "http://127.0.0.1/", false), ("::1", "http://[::1]/", true),
      ("fe80::/10", "http://[fe81::1]/", true), ("fe80::/10", "http://[ff81::1]/", false),
      ("10.0.0.1", "http://[::1]/", false), ("*.corp", "http://a.corp/", true), ("*.corp", "http://b.a.CORP./", true),
      ("*.corp", "http://corp/", true), ("*.corp", "http://acorp/", false), ("*corp", "http://acorp/", true),
      ("10.*", "http://10.1.2.3/", true), ("10.*", "http://110.1.2.3/", false), ("h:81", "http://h:81/", true),
      ("h:81", "http://h/", false), ("[::1]", "http://[::1]:8/", true), ("[::1]:8", "http://[::1]:8/", true),
      ("::1", "http://[::]:1/", false),
    ])
  func `no_proxy names hosts, domains and networks`(exceptions: String, url: String, isDirect: Bool) throws {
    #expect((try name(url, ["http_proxy": "p:1", "no_proxy": exceptions]) == nil) == isDirect)
  }

  @Test(
    arguments: [
      ("http://user:s3cret@p.example:3128/", "p.example:3128"), ("user:s3cret@p", "p:1080"),
      ("socks5://us@er:s3cret@[::1]:9", "[::1]:9"), ("http://[::1]", "[::1]:1080"),
      ("http://user:s3/cret@p:1", "(malformed)"), ("http://", "(malformed)"), ("http://user:s3cret@", "(malformed)"),
      ("http://user:s3cret", "(malformed)"), ("http://user:s3cret%40p:1", "(malformed)"),
      ("http:/user:s3cret@p:1", "(malformed)"), ("user@p:s3cret", "(malformed)"),
      ("http://user:s3?cret@p", "(malformed)"), ("p\u{1b}[2J:1", "p\\x1b[2J:1"),
    ])
  func `the name tells no secrets`(text: String, name: String) {
    #expect(Proxy(text).name == name)
  }

  private func failure(of hop: HopFacts, with code: CURLcode) throws -> TransferFailure {
    guard case .failed(let failure) = outcome(of: hop, with: code) else { throw TestSupportError("no failure") }
    return failure
  }

  /// Neither the host nor the proxy is to blame.
  @Test func `no socket is left`() throws {
    for errno in [EMFILE, ENOBUFS, EAFNOSUPPORT] {
      var hop = HopFacts(host: "h.example", port: 443, scheme: .https)
      (hop.socketErrno, hop.proxy) = (errno, Proxy("http://p.example:3128"))
      let failure = try failure(of: hop, with: CURLE_COULDNT_CONNECT)
      #expect(failure.code == (errno == EAFNOSUPPORT ? .proxy : .local), "\(failure)")
    }
  }

  /// A resolver without sockets proves nothing of the host, nor of the proxy.
  @Test(arguments: [CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY])
  func `no socket is left to resolve with`(code: CURLcode) throws {
    for errno in [0, EMFILE, ENFILE] {
      var hop = HopFacts(host: "h.example", port: 443, scheme: .https)
      hop.socketErrno = errno
      if code == CURLE_COULDNT_RESOLVE_PROXY { hop.proxy = Proxy("http://p.example:3128") }
      let failure = try failure(of: hop, with: code)
      #expect((failure.code == .local) == (errno != 0), "\(failure)")
    }
    #expect(OpenSockets.lack == 0)
  }

  /// What libcurl says, and what it means.
  @Test(
    arguments: [
      (.http, CURLE_COULDNT_RESOLVE_PROXY, 0, false, 0, .proxy), (.http, CURLE_COULDNT_CONNECT, 0, false, 0, .proxy),
      (.http, CURLE_OPERATION_TIMEDOUT, 0, false, 0, .proxy), (.https, CURLE_RECV_ERROR, 407, true, 0, .proxy),
      (.https, CURLE_RECV_ERROR, 401, true, 0, .proxy), (.https, CURLE_RECV_ERROR, 0, true, 0, .proxy),
      // Whatever the proxy says of the host is the host's: the next job may have another.
      (.https, CURLE_RECV_ERROR, 403, true, 0, .connect), (.https, CURLE_RECV_ERROR, 503, true, 0, .connect),
      (.https, CURLE_OPERATION_TIMEDOUT, 0, true, 0, .connect),
      (.https, CURLE_PROXY, 0, true, Int(CURLPX_REPLY_CONNECTION_REFUSED.rawValue), .connect),
      (.https, CURLE_PROXY, 0, true, Int(CURLPX_USER_REJECTED.rawValue), .proxy),
      (.https, CURLE_PEER_FAILED_VERIFICATION, 200, true, 0, .tls),
      (.https, CURLE_PEER_FAILED_VERIFICATION, 0, true, 0, .tls),
    ] as [(Scheme, CURLcode, Int, Bool, Int, TransferFailure.Code)])
  func `who is to blame`(
    scheme: Scheme, code: CURLcode, status: Int, isConnected: Bool, socks: Int, expected: TransferFailure.Code
  ) throws {
    // Its texts are libcurl's.
    try Libcurl.load()
    var hop = HopFacts(host: "h.example", port: 443, scheme: scheme)
    hop.proxy = Proxy("http://user:s3cret@p.example:3128")
    (hop.connectStatus, hop.isProxyConnected, hop.socksError) = (status, isConnected, socks)
    let failure = try failure(of: hop, with: code)
    #expect(failure.code == expected, "\(failure)")
    #expect(expected == .tls || failure.message.contains("p.example:3128"), "\(failure)")
    #expect(!failure.message.contains("s3cret") && !failure.message.contains("user:"))
    #expect(failure.message.contains("h.example") == (expected != .proxy), "\(failure)")
  }
}
