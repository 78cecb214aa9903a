/// The place of a payload below the output root: names joined by single slashes.
package struct OutputPath: Sendable, Hashable {
  /// The directories, from outside to inside.
  package let parents: [String]
  package let name: String

  /// The maximum number of names in a path. A worker keeps each directory of the path open until the payload's name is
  /// durable, and all its jobs share its descriptors.
  package static let maximumParts = 32

  package static func == (one: OutputPath, other: OutputPath) -> Bool { one.text.exact == other.text.exact }

  package func hash(into hasher: inout Hasher) { hasher.combine(text.exact) }

  package var text: String { (parents + [name]).joined(separator: "/") }

  package init?(_ text: String) {
    guard Self.defect(of: text) == nil else { return nil }
    var components = Self.components(of: text)
    name = components.removeLast()
    parents = components
  }

  /// Whether a job's `output:` names the directory for the payload, and leaves the name to the URL.
  static func isDirectory(_ text: String) -> Bool { text.utf8.last == UInt8(ascii: "/") }

  /// Splits at bytes, as the kernel does. Swift's characters would hide a slash with a combining mark behind it, and so
  /// a `..` before it.
  private static func components(of text: String) -> [String] {
    text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { String(Substring($0)) }
  }

  /// Why `text` cannot be an output; nil when it can. Symbolic links are found only when it is opened.
  package static func defect(of text: String) -> String? {
    if text.isEmpty { return "is empty" }
    if text.utf8.first == UInt8(ascii: "/") { return "is absolute: it has to be relative to the output directory" }
    if text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) { return "contains control bytes" }
    if text.utf8.last == UInt8(ascii: "/") { return "names a directory: add the file's name" }
    // path_resolution(7): a path has at most PATH_MAX bytes, with the NUL.
    if text.utf8.count > 4000 { return "is too long" }
    let components = components(of: text)
    if components.count > maximumParts { return "has more than \(maximumParts) parts" }
    for component in components {
      if component.isEmpty { return "contains an empty name (//)" }
      if component == "." || component == ".." {
        return "contains `\(component)`: it may not leave the output directory"
      }
      if component.utf8.count > 255 { return "contains a name of over 255 bytes" }
      // The spool of a `get`, or a name that a commit gives for a moment.
      if component.utf8.starts(with: ".spoolrun".utf8) { return "contains `\(component)`, which is spoolrun's own" }
    }
    return nil
  }
}

/// Names of payloads, decided before a job is dropped. Pure: the same input gives the same names each time.
package enum PayloadName {
  /// The names of payloads from several URLs, in the order of `wanted`. URLs that differ and would give the same name,
  /// as those that differ only in their query do, get names that say which is which: `data.tar.gz` becomes
  /// `data~1c291ca39f3bd42e.tar.gz`. The digits come from the URL alone, so the order of the URLs makes no difference,
  /// and a query, which may hold secrets, is not shown. The same URL twice gets the same name.
  /// - Parameter wanted: the name that each URL gives, or the path that ends in it, and the URL.
  package static func distinct(_ wanted: [(name: String, url: String)]) -> [String] {
    var urls: [ExactText: Set<ExactText>] = [:]
    for (name, url) in wanted { urls[name.exact, default: []].insert(url.exact) }
    var lengths: [ExactText: MarkLength] = [:]
    for (name, group) in urls where group.count > 1 {
      lengths[name] = MarkLength.allCases.first { length in
        let marked = Set(group.map { Self.marked(name.text, of: [$0.text], length).exact })
        return marked.count == group.count && marked.allSatisfy { urls[$0] == nil }
      }
    }
    return wanted.map { name, url in
      guard let group = urls[name.exact], group.count > 1 else { return name }
      return marked(name, of: [url], lengths[name.exact] ?? .whole)
    }
  }

  package enum MarkLength: Int, CaseIterable, Sendable {
    /// Enough for a million URLs of one name.
    case usual = 16
    /// For a list that is made to be difficult.
    case whole = 64
  }

  /// `path` with the first digits of ``fingerprint(of:)`` before the extension of its last name.
  /// - Parameter texts: what distinguishes this file from others of the name: its URLs.
  /// - Parameter limit: the maximum of bytes of the last name, which is cut.
  package static func marked(
    _ path: String, of texts: [String], _ length: MarkLength, limit: Int = FileName.maximumLength
  ) -> String { marked(path, with: fingerprint(of: texts).prefix(length.rawValue), limit: limit) }

  /// `path` with these digits before the extension of its last name.
  package static func marked(
    _ path: String, with digits: some StringProtocol, limit: Int = FileName.maximumLength
  ) -> String {
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) } ?? path.startIndex
    let (stem, suffix) = split(path[slash...])
    let mark = "~" + digits
    return path[..<slash] + cut(stem, to: max(1, limit - mark.utf8.count - suffix.utf8.count)) + mark + suffix
  }

  /// The path of a version of `path` that came at this time: `list~20261126T030000Z.txt`.
  package static func version(of path: String, at time: Timestamp) -> String {
    marked(path, with: String(decoding: time.description.utf8.filter { $0 != 0x2D && $0 != 0x3A }, as: UTF8.self))
  }

  static func isVersion(_ version: String, of path: String) -> Bool {
    version.utf8.indices.contains { mark in
      let stamp = version.utf8[mark...].dropFirst().prefix("20261126T030000Z".utf8.count)
      return version.utf8[mark] == UInt8(ascii: "~") && marked(path, with: Substring(stamp)).exact == version.exact
    }
  }

  /// A name before its extension, and the extension with its dot: `.gz`, but `.tar.gz` as a whole. A long end after a
  /// dot is no extension.
  private static func split(_ name: Substring) -> (stem: Substring, suffix: Substring) {
    func lastDot(in text: Substring) -> Substring.Index? {
      guard let dot = text.utf8.lastIndex(of: UInt8(ascii: ".")), dot > text.startIndex,
        text.utf8.distance(from: dot, to: text.endIndex) <= 16
      else { return nil }
      return dot
    }
    guard let dot = lastDot(in: name) else { return (name, "") }
    let inner = name[..<dot]
    if let outer = lastDot(in: inner), inner[outer...] == ".tar" { return (name[..<outer], name[outer...]) }
    return (inner, name[dot...])
  }

  /// A name that somebody else chose, such as a server, made safe for a directory and a terminal (RFC 6266, section
  /// 4.3): its last part, without control characters and those that change the direction of text, without dots and
  /// dashes in front or blanks around, and cut to the length that a name may have.
  /// - Returns: nil where nothing is left of it.
  package static func cleaned(_ text: String) -> String? {
    // Windows programs send paths with backslashes.
    let last = text.utf8.split(omittingEmptySubsequences: false) { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
      .last.map { String(Substring($0)) }
    var scalars = String.UnicodeScalarView()
    for scalar in (last ?? "").unicodeScalars where !isUnsafeForDisplay(scalar) && scalar.value != 0xFFFD {
      scalars.append(scalar)
    }
    let begun = scalars[...].drop { $0.properties.isWhitespace || $0 == "." || $0 == "-" }
    let (stem, suffix) = split(Substring(begun))
    var safe = (cut(stem, to: FileName.maximumLength - suffix.utf8.count) + suffix).unicodeScalars
    while let end = safe.last, end.properties.isWhitespace { safe.removeLast() }
    return safe.isEmpty ? nil : String(safe)
  }

  /// The first `count` bytes of `text`, or fewer, so that no character is cut.
  static func cut(_ text: Substring, to count: Int) -> String {
    var length = 0
    var scalars = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      length += UTF8.width(scalar)
      if length > count { break }
      scalars.append(scalar)
    }
    return String(scalars)
  }

  /// 64 hexadecimal digits that stand for `texts`: the SHA-256 of them, each with a NUL after it, which none of them
  /// contains.
  package static func fingerprint(of texts: [String]) -> String {
    Digest(.sha256, of: texts.map { "\($0)\0" }.joined()).description
  }
}

extension JobName {
  /// Leaves room for the number of a later job of this name.
  package static let lengthWithoutNumber = maximumLength - 10

  /// A name for a job, made of the last part of its output or URL: cut, without leading dots and dashes, because a name
  /// with a leading dash would be parsed as an option.
  /// - Parameter suffix: ASCII that distinguishes the job from others.
  package init(like source: String, suffix: String = "") {
    let last = source.utf8.split(separator: UInt8(ascii: "/")).last.map(Array.init) ?? []
    let limit = Self.lengthWithoutNumber
    var stem = FileName(Array(last.drop { $0 == 0x2E || $0 == 0x2D }))
    stem = stem.suffixed("", limit: limit - suffix.utf8.count)
    if stem.isData { stem = stem.dataOwner }
    self = JobName(stem.suffixed(suffix, limit: limit)) ?? JobName(unchecked: FileName("job\(suffix)"))
  }
}
