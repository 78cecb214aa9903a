internal import CLinux
internal import Glibc
package import Spool
internal import SystemPackage
package import Transfer

/// Makes the worker's ``NetworkOptions`` of what `defaults` says. Looks at the files that it names, because libcurl
/// goes on without those that it cannot read.
struct NetworkSetup {
  private(set) var options: NetworkOptions
  /// What a person should know although the worker can run.
  private(set) var warnings: [String] = []
  private let directory: String
  private let home: String?

  /// - Parameter directory: the absolute path of the spool, to which the paths in `defaults` are relative.
  /// - Parameter home: the user's home directory, for `~/`; nil if it is not known.
  init(_ keys: NetworkKeys, directory: String, home: String?) throws(Defect) {
    (self.directory, self.home) = (directory, home)
    options = NetworkOptions(proxy: keys.proxy)
    options.refusesPrivate = keys.allowsPrivate == false
    switch keys.ipVersion {
    case .four: options.addressFamily = .ipv4
    case .six: options.addressFamily = .ipv6
    case nil: break
    }
    options.authorities = try keys.authorities.map { file throws(Defect) in try place("cacert", file).path }
    try useCertificate(keys)
    if let file = keys.netrc, file.text != "no" {
      let netrc = try secret("netrc", file.text == "yes" ? .init("~/.netrc", line: file.line) : file)
      try check(netrc: netrc)
      options.netrc = netrc.path
    }
    try useCookies(keys.cookies)
  }

  private mutating func useCertificate(_ keys: NetworkKeys) throws(Defect) {
    guard let certificate = keys.certificate else {
      if let key = keys.certificateKey { throw Defect(line: key.line, reason: "key: is of no use without cert:") }
      return
    }
    guard let key = keys.certificateKey else {
      options.certificate = try secret("cert", certificate).path
      return
    }
    options.certificate = try place("cert", certificate).path
    options.certificateKey = try secret("key", key).path
  }

  /// A login needs the cookies that its server sets, so there are cookies wherever there are logins.
  private mutating func useCookies(_ named: NetworkKeys.File?) throws(Defect) {
    let word = named?.text ?? (options.netrc == nil ? "no" : "yes")
    if word == "no" { return }
    options.cookies = .session(file: nil)
    guard let named, word != "yes" else { return }
    let file = try secret("cookies", named)
    try check(cookies: file)
    options.cookies = .session(file: file.path)
  }

  // MARK: files

  private struct Place {
    let key: String
    let path: String
    let line: Int?

    func defect(_ reason: String) -> Defect { Defect(line: line, reason: "\(key): \(escaped(path))\(reason)") }
  }

  private func place(_ key: String, _ file: NetworkKeys.File) throws(Defect) -> Place {
    var path = file.text
    if path.begins(with: "~/"), let home, home.begins(with: "/") {
      path = home + path.dropFirst()
    } else if !path.begins(with: "/") {
      path = "\(directory)/\(path)"
    }
    let place = Place(key: key, path: path, line: file.line)
    let mode = try mode(place)
    guard mode & S_IFMT == S_IFREG else { throw place.defect(" is not a regular file") }
    guard access(path, R_OK) == 0 else { throw place.defect(": \(Errno(rawValue: errno))") }
    return place
  }

  private func mode(_ place: Place) throws(Defect) -> mode_t {
    var status = stat()
    guard stat(place.path, &status) == 0 else { throw place.defect(": \(Errno(rawValue: errno))") }
    return status.st_mode
  }

  /// A file that nobody else should be able to read.
  private mutating func secret(_ key: String, _ file: NetworkKeys.File) throws(Defect) -> Place {
    let place = try place(key, file)
    if try mode(place) & (S_IRGRP | S_IROTH) != 0 {
      warnings.append(place.defect(" can be read by other users: use chmod 600").description)
    }
    return place
  }

  private mutating func check(netrc place: Place) throws(Defect) {
    let words = try contents(place).split(separator: 0x0A).map { $0.drop(while: isBlank) }
    let hasDefault = words.contains { line in line.prefix { $0 > 0x20 }.elementsEqual("default".utf8) }
    guard hasDefault else { return }
    warnings.append(place.defect(" has an entry `default`, which goes to every host that a job names").description)
  }

  /// Browsers' extensions also export cookies as JSON, of which libcurl would read none.
  private mutating func check(cookies place: Place) throws(Defect) {
    let text = try contents(place)
    do throws(CookieFile.Problem) {
      if try !CookieFile.hasCookies(text) { warnings.append(place.defect(" has no cookies").description) }
    } catch {
      throw place.defect(" line \(error.line) is no cookie in Netscape's format: \(error.reason)")
    }
  }

  private func contents(_ place: Place) throws(Defect) -> [UInt8] {
    do throws(SpoolError) { return try ReplacedFile.read(place.path, limit: .max) ?? [] } catch {
      throw place.defect(": \(error.errno)")
    }
  }
}

extension JobRequest {
  /// How `defaults` have servers reached.
  /// - Parameter warn: gets what a person should know of it.
  package func networkOptions(of spool: Spool, warn: (String) -> Void) throws(Defect) -> NetworkOptions {
    if network == NetworkKeys() { return NetworkOptions() }
    let directory: String
    do throws(Errno) { directory = try realPath(spool.settingsLocation) } catch {
      throw Defect(line: nil, reason: "the spool: \(error)")
    }
    let setup = try NetworkSetup(network, directory: directory, home: getenv("HOME").map { String(cString: $0) })
    setup.warnings.forEach(warn)
    return setup.options
  }
}
