import Glibc
import Spool
import TestSupport
import Testing

@testable import SpoolWorker
@testable import Transfer

/// What `defaults` name is looked for when a worker starts.
@Suite struct NetworkSetupTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    for name in ["secret", "public", ".netrc", "cert"] { try write(name, "") }
    #expect(chmod("\(directory.path)/public", 0o644) == 0)
  }

  private func write(_ name: String, _ text: String) throws {
    try writeFile("\(directory.path)/\(name)", Array(text.utf8))
  }

  private func setUp(home: String? = nil, _ change: (inout NetworkKeys) -> Void) throws(Defect) -> NetworkSetup {
    var keys = NetworkKeys()
    change(&keys)
    return try NetworkSetup(keys, directory: directory.path, home: home)
  }

  private func file(_ text: String) -> NetworkKeys.File { NetworkKeys.File(text, line: 7) }

  @Test func pathsAreRelativeToTheSpool() throws {
    let setup = try setUp(home: directory.path) {
      $0.netrc = file("yes")
      $0.certificate = file("cert")
      $0.certificateKey = file("~/secret")
      $0.authorities = file("\(directory.path)/public")
      $0.ipVersion = .six
    }
    #expect(setup.options.netrc == "\(directory.path)/.netrc" && setup.options.cookies == .session(file: nil))
    #expect(setup.options.certificate == "\(directory.path)/cert")
    #expect(setup.options.certificateKey == "\(directory.path)/secret")
    #expect(setup.options.authorities == "\(directory.path)/public" && setup.options.addressFamily == .ipv6)
    #expect(setup.warnings.isEmpty)
  }

  @Test(
    arguments: [
      (nil, nil, .none), ("no", nil, .none), (nil, "yes", .session(file: nil)), ("secret", "no", .none),
      ("secret", nil, .session(file: nil)), ("no", "yes", .session(file: nil)),
    ] as [(String?, String?, NetworkOptions.CookieUse)])
  func loginsHaveCookies(netrc: String?, cookies: String?, expected: NetworkOptions.CookieUse) throws {
    let setup = try setUp {
      $0.netrc = netrc.map(file)
      $0.cookies = cookies.map(file)
    }
    #expect(setup.options.cookies == expected)
    #expect((setup.options.netrc == nil) == (netrc != "secret"))
  }

  @Test func aSecretThatOthersCanRead() throws {
    try write("cookies", "h\tTRUE\t/\tFALSE\t0\tn\tv\n")
    #expect(chmod("\(directory.path)/cookies", 0o640) == 0)
    try write("netrc", "machine h login a password b\ndefault login c password d\n")
    let setup = try setUp {
      $0.netrc = file("netrc")
      $0.cookies = file("cookies")
      $0.certificate = file("public")
      $0.certificateKey = file("public")
    }
    #expect(
      setup.warnings == [
        "line 7: key: \(directory.path)/public can be read by other users: use chmod 600",
        "line 7: netrc: \(directory.path)/netrc has an entry `default`, which goes to every host that a job names",
        "line 7: cookies: \(directory.path)/cookies can be read by other users: use chmod 600",
      ])
    // Without a key of its own, the certificate's file has it.
    #expect(try setUp { $0.certificate = file("public") }.warnings.count == 1)
  }

  @Test func whatCannotBeUsed() throws {
    try write("json", "[{\"domain\": \"h\"}]\n")
    let cases: [(String, (inout NetworkKeys) -> Void)] = [
      ("netrc: ~/.netrc", { $0.netrc = file("yes") }), ("netrc: nowhere: No such file", { $0.netrc = file("nowhere") }),
      ("cookies: json line 1 is no cookie", { $0.cookies = file("json") }),
      ("cacert: /dev/null is not a regular file", { $0.authorities = file("/dev/null") }),
      ("key: is of no use", { $0.certificateKey = file("secret") }),
    ]
    for (reason, change) in cases {
      let defect = #expect(throws: Defect.self) { try setUp(change) }
      #expect(defect?.line == 7)
      let said = defect?.reason.replacing("\(directory.path)/", with: "") ?? ""
      #expect(said.hasPrefix(reason), "\(said)")
    }
    try write("empty", "# none\n")
    #expect(try setUp { $0.cookies = file("empty") }.warnings.first?.hasSuffix("has no cookies") == true)
  }
}
