internal import ArgumentParser
internal import CLinux
internal import Glibc
internal import Spool
internal import SpoolLists
internal import SystemPackage
internal import Transfer

/// What the command line of `get` asks for.
struct GetPlan {
  let urls: [String]
  let list: ListArguments
  let output: String?
  let given: [(key: JobKey, text: String)]

  /// - Throws: the exit status, after a message.
  func items() throws -> [GetItem] {
    try Libcurl.loadOrExit()
    let place = GetPlace(output) { path in
      var status = stat()
      return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
    do { if list.from == nil { try list.refuseWithoutFile() } } catch let error as ValidationError {
      throw refusal(error.message)
    }
    let wanted = try list.from.map { try listed($0, place) } ?? place.name.map { [try file($0, urls)] } ?? files()
    let perFile = given.first { $0.key.scope == .job }
    if wanted.count > 1, let perFile { throw refusal("--\(perFile.key.name) is for one file: get each by itself") }
    if let expires = wanted.compactMap(\.asked.expires).min(), expires <= .now() {
      throw refusal("--expires: \(expires) is past")
    }
    // Nothing is made for a command that is refused.
    let directory = try absolute(place.directory)
    return wanted.map { name, asked in
      GetItem(asked: asked, directory: directory, name: name, shown: place.shown(name))
    }
  }

  private func listed(_ file: String, _ place: GetPlace) throws -> [(name: String, asked: JobRequest)] {
    guard urls.isEmpty else { throw refusal("either a list by --from, or URLs") }
    guard place.name == nil else { throw refusal("--output: for a list it names a directory: use --output DIR/") }
    do {
      return try GetList(list: list, given: given).files(file)
    } catch let problems as ListProblems {
      ListComplaint(title: GetList.title(file), problems: problems).refuse(
        leavesOut: list.ignoreUnknown, "nothing is fetched")
      throw ExitStatus.usage.code
    } catch let defect as Defect {
      let line = defect.line.map { "\(GetList.title(file)):\($0): " } ?? ""
      throw refusal("\(line)\(defect.reason)")
    } catch let error as ValidationError {
      throw refusal(error.message)
    } catch let error as SpoolError {
      Terminal.error("\(error)")
      throw ExitStatus.noSpool.code
    }
  }

  /// A file for each URL, by the name that the URL gives.
  private func files() throws -> [(name: String, asked: JobRequest)] {
    if urls.isEmpty, given.contains(where: { $0.key.name == JobKey.resolve.name }) {
      throw refusal("--resolve without a URL gives no name: use --output FILE")
    }
    if urls.isEmpty { throw refusal("name the URL of a file, or a list with --from") }
    let names = try urls.map { url in
      do throws(Defect) {
        if let name = try GetList.name(of: url) { return name }
      } catch {
        throw refusal(error.reason)
      }
      throw refusal("the URL does not end in a file name: use --output FILE")
    }
    var seen: Set<ExactText> = []
    return try zip(PayloadName.distinct(zip(names, urls).map { (name: $0, url: $1) }), urls)
      .filter { seen.insert($0.0.exact).inserted }.map { try file($0, [$1]) }
  }

  /// One file, checked by the reader that a worker uses.
  private func file(_ name: String, _ urls: [String]) throws -> (name: String, asked: JobRequest) {
    do throws(Defect) {
      let names = try urls.map { url throws(Defect) in try GetList.name(of: url) }
      let asked = try JobRequest(urls: urls, given: given)
      // Only the URL can give a name with blanks around it.
      let name = names.first??.exact == name.exact ? name : String(trimmed(name[...]))
      var placed = asked
      placed.setOutput(name)
      _ = try placed.readBack()
      return (name, asked)
    } catch {
      throw refusal(error.reason)
    }
  }

  /// The real path of a directory, made when it is missing: then no link of the path can lead a payload elsewhere.
  private func absolute(_ directory: String) throws -> String {
    makeDirectories(above: directory, mode: 0o777)
    _ = mkdir(directory, 0o777)
    do throws(Errno) { return try realPath(directory) } catch {
      let hint = error.rawValue == EILSEQ ? ": its path is not UTF-8; use a symbolic link to it, as --output LINK/" : ""
      Terminal.error("\(escaped(directory)): \(error)\(hint)")
      throw ExitStatus.cannotCreate.code
    }
  }

  private func refusal(_ reason: String) -> any Error {
    Terminal.error("\(reason); see `spoolrun get --help`")
    return ExitStatus.usage.code
  }
}
